// A run on no device, resolved by the profile h200x8: as the labs' texts have it, and without one of its causes.
#pragma once

#include "labs/harness/bench.hpp"

namespace shardbook::labs {

inline simulate::Change change(const simulate::Scale& scale) {
  simulate::Change made;
  made.scale = scale;
  return made;
}

class Modelled {
 public:
  explicit Modelled(Options options) : issued_([&options] {
      options.insert(options.begin(), {"device", "meta"});
      return config_of(options);
    }(), {}), clock_(issued_) {}
  double ms(const simulate::Change& change = {}) const { return static_cast<double>(clock_.step_ns(change)) / 1e6; }
  double exposed_ms() const { return static_cast<double>(clock_.timing().exposed_ns) / 1e6; }
  double exposed_percent() const { return 100 * exposed_ms() / ms(); }
  double sums() const { return static_cast<double>(issued_.collectives().size()); }
  const Clock& clock() const { return clock_; }
  const Issued& issued() const { return issued_; }

 private:
  Issued issued_;
  Clock clock_;
};

}  // namespace shardbook::labs
