// What tests of planted problems expect of a cause.
#pragma once

#include <string>

#include "engine/cause/text.hpp"
#include "tests/cause/runs.hpp"

namespace shardbook::cause {

inline constexpr double within = 0.15;

inline void expect_near(double said_ns, double really_ns, const char* what) {
  EXPECT_GT(really_ns, 0) << what;
  EXPECT_NEAR(said_ns, really_ns, within * really_ns) << what << ": said " << said_ns / 1e6 << " ms, really " << really_ns / 1e6;
}

// The leading cause is what `headline` says.
inline void expect_leads(const Why& why, Regime regime, const std::string& part) {
  EXPECT_EQ(why.regime, regime) << headline(why);
  EXPECT_TRUE(why.has_problem) << headline(why);
  EXPECT_NE(headline(why).find(part), std::string::npos) << headline(why);
  EXPECT_NE(headline(why).find(adjective_of(regime)), std::string::npos) << headline(why);
}

}  // namespace shardbook::cause
