// The figures that labs 01, 02 and 04 quote, computed anew by the profile, and the counterfactual of each "because": the cause
// is taken out of the profile, and the effect must be gone.
//
// labs/NN_name/figures.txt holds them, a line each. SHARDBOOK_WRITE_FIGURES=1 writes the files anew; without it a file that
// differs is stale, and fails. Every number of ms or µs in a lab's texts must be one of these or of its exercises' own
// (solutions/NN_name/*.figures.json, which cmake/CheckExercise.cmake compares).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/labs/modelled.hpp"

namespace shardbook::labs {
namespace {

namespace fs = std::filesystem;
using Figures = std::vector<std::pair<std::string, double>>;

const simulate::Change no_communication = change({.communication = 0});
const simulate::Change no_latency = change({.latency = 0});
const simulate::Change half_host = change({.host = 0.5});

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(const Figures& figures) {
  std::string all = "# Made by tests/labs: SHARDBOOK_WRITE_FIGURES=1 test_labs. Modelled, profile h200x8; ms unless the name says otherwise.\n";
  for (const auto& [name, value] : figures) {
    char line[160];
    std::snprintf(line, sizeof line, "%s %.5g\n", name.c_str(), value);
    all += line;
  }
  return all;
}

void expect_known(const std::string& lab, const Figures& figures) {
  const fs::path path = fs::path(SHARDBOOK_SOURCE_DIR) / "labs" / lab / "figures.txt";
  if (std::getenv("SHARDBOOK_WRITE_FIGURES") != nullptr) std::ofstream(path) << text_of(figures);
  EXPECT_EQ(read(path), text_of(figures)) << path << " is stale: SHARDBOOK_WRITE_FIGURES=1 writes it anew; then look at the texts that quote it";
}

// ---- Lab 01: gpt-124m, 8 replicas, a sequence each ----------------------------------------------

Modelled replicas(const std::string& reduce, int bucket_mib = 0) {
  Options options{{"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}, {"set", "data_parallel.reduce=" + reduce}};
  if (bucket_mib > 0) options.push_back({"set", "data_parallel.bucket_mib=" + std::to_string(bucket_mib)});
  return Modelled(options);
}

TEST(Lab01, FiguresAreThoseOfTodayAndLatencyIsWhyManySumsAreSlow) {
  const Modelled naive = replicas("naive"), flat = replicas("flat"), blocks = replicas("bucketed", 1), best = replicas("bucketed", 32);
  const Modelled larger = replicas("bucketed", 64), largest = replicas("bucketed", 128);
  const double alpha = simulate::at(naive.clock().profile().collectives.at(program::OpKind::all_reduce).at(8), 0) / 1e3;
  expect_known("01_data_parallel", {
      {"naive", naive.ms()}, {"naive.exposed", naive.exposed_ms()}, {"flat", flat.ms()}, {"flat.exposed", flat.exposed_ms()},
      {"blocks", blocks.ms()}, {"blocks.exposed", blocks.exposed_ms()}, {"buckets32", best.ms()}, {"buckets32.exposed", best.exposed_ms()},
      {"buckets64", larger.ms()}, {"buckets64.exposed", larger.exposed_ms()}, {"buckets128", largest.ms()}, {"buckets128.exposed", largest.exposed_ms()},
      {"naive.less.flat", naive.ms() - flat.ms()}, {"alpha_us", alpha}, {"alpha.of.148", 147 * alpha / 1e3},
      {"naive.without.latency", naive.ms(no_latency)}, {"flat.without.latency", flat.ms(no_latency)}, {"without.communication", naive.ms(no_communication)},
      {"flat.less.buckets32", flat.ms() - best.ms()}});

  // Latency is why 148 sums are slower than one: without it most of that is gone, and flat hardly moves
  EXPECT_GT(naive.ms() - naive.ms(no_latency), 0.9 * 147 * alpha / 1e3);
  EXPECT_LT(flat.ms() - flat.ms(no_latency), 0.05);
  // Communication is why the orders differ at all: without it all are within 3 %
  for (const Modelled* run : {&naive, &flat, &blocks, &best}) EXPECT_NEAR(run->ms(no_communication), flat.ms(no_communication), 0.03 * flat.ms(no_communication));
  EXPECT_GT(naive.ms(), 1.6 * best.ms());
}

// ---- Lab 02: the grammar tutor ------------------------------------------------------------------

Modelled tutor(int tp, int width = 128, int sequences = 16) {
  return Modelled({{"tp", std::to_string(tp)}, {"width", std::to_string(width)}, {"heads", std::to_string(width / 32)}, {"sequences", std::to_string(sequences)}, {"micro-batches", "1"}});
}

TEST(Lab02, FiguresAreThoseOfTodayAndTheHostIsWhyTwoGpusAreSlower) {
  const Modelled one = tutor(1), two = tutor(2), four = tutor(4), large_batch = tutor(1, 128, 64);
  Figures figures{{"tp1", one.ms()}, {"tp2", two.ms()}, {"tp4", four.ms()}, {"tp2.less.tp1_us", 1e3 * (two.ms() - one.ms())}, {"sums", two.sums()},
                  {"tp2.without.communication", two.ms(no_communication)}, {"tp2.half.host", two.ms(half_host)},
                  {"tp1.free.host", one.ms(change({.host = 0}))}, {"tp2.free.host", two.ms(change({.host = 0}))}, {"tp1.four.times.the.batch", large_batch.ms()}};
  const simulate::HostCosts& host = two.clock().profile().host;
  const double a_sum = (host.collective_ns + 2 * host.record_ns + 2 * host.wait_ns) / 1e3;
  figures.emplace_back("host.a.sum_us", a_sum);
  for (int width : {512, 768, 832, 1024, 2048}) {
    const Modelled narrow = tutor(1, width), cut = tutor(2, width);
    const std::string name = "width" + std::to_string(width);
    figures.emplace_back(name + ".tp1", narrow.ms());
    figures.emplace_back(name + ".tp2", cut.ms());
    figures.emplace_back(name + ".tp2.without.communication", cut.ms(no_communication));
  }
  const Options large{{"model", "gpt-124m"}, {"tp", "2"}, {"sequences", "8"}};
  Options awaited_options = large;
  awaited_options.push_back({"set", "tensor_parallel.input_gradient_sum=awaited"});
  const Modelled hidden(large), awaited(awaited_options);
  figures.emplace_back("gpt124m.tp2", hidden.ms());
  figures.emplace_back("gpt124m.tp2.awaited", awaited.ms());
  expect_known("02_tensor_parallel", figures);

  // The host is why: communication that costs nothing gives nothing, a faster host does, and the sums cost it the difference
  EXPECT_NEAR(two.ms(no_communication), two.ms(), 0.001 * two.ms());
  EXPECT_LT(two.ms(half_host), 0.8 * two.ms());
  EXPECT_NEAR(two.sums() * a_sum, 1e3 * (two.ms() - one.ms()), 1);
  EXPECT_NEAR(two.ms(), four.ms(), 1e-6);
  // Sums that are awaited at once cost, and communication is why
  EXPECT_GT(awaited.ms(), 1.02 * hidden.ms());
  EXPECT_NEAR(awaited.ms(no_communication), hidden.ms(no_communication), 0.005 * hidden.ms());
  // At width 512 it is the opposite: the network pays, the host does not
  const Modelled wide = tutor(2, 512);
  EXPECT_LT(wide.ms(no_communication), 0.9 * wide.ms());
  EXPECT_NEAR(wide.ms(half_host), wide.ms(), 0.02 * wide.ms());
}

// ---- Lab 04: gpt-1.3b over 8 shards -------------------------------------------------------------

Modelled shards(int sequences, const Options& more = {}) {
  Options options{{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", std::to_string(sequences)}, {"micro-batches", "1"}};
  options.insert(options.end(), more.begin(), more.end());
  return Modelled(options);
}

TEST(Lab04, FiguresAreThoseOfTodayAndOpenGathersAreWhyTheStepIsLong) {
  const Modelled none = shards(16, {{"prefetch", "0"}}), both = shards(16), forward = shards(16, {{"set", "fsdp.backward_prefetch=none"}});
  const Modelled two_ahead = shards(16, {{"prefetch", "2"}}), three_ahead = shards(16, {{"prefetch", "3"}});
  const Modelled small = shards(8), large = shards(24), larger = shards(32), largest = shards(64);
  expect_known("04_fsdp", {
      {"none", none.ms()}, {"forward", forward.ms()}, {"both", both.ms()}, {"two.ahead", two_ahead.ms()}, {"three.ahead", three_ahead.ms()},
      {"none.less.both", none.ms() - both.ms()}, {"none.less.forward", none.ms() - forward.ms()}, {"forward.less.both", forward.ms() - both.ms()}, {"none.exposed", none.exposed_ms()}, {"both.exposed", both.exposed_ms()},
      {"none.without.communication", none.ms(no_communication)}, {"both.without.communication", both.ms(no_communication)},
      {"tokens1024", small.ms()}, {"tokens1024.exposed_percent", small.exposed_percent()}, {"tokens2048.exposed_percent", both.exposed_percent()},
      {"tokens3072", large.ms()}, {"tokens3072.exposed_percent", large.exposed_percent()}, {"tokens4096", larger.ms()}, {"tokens4096.exposed_percent", larger.exposed_percent()},
      {"tokens8192", largest.ms()}, {"tokens8192.exposed", largest.exposed_ms()}, {"tokens8192.without.communication", largest.ms(no_communication)},
      {"tokens8192.gain", largest.ms() - largest.ms(no_communication)}});

  // Communication is why the orders differ: without it they are one
  EXPECT_NEAR(none.ms(no_communication), both.ms(no_communication), 0.01 * both.ms(no_communication));
  EXPECT_GT(none.ms(), 1.3 * both.ms());
  // Bandwidth and not latency
  EXPECT_LT(both.ms(change({.bandwidth = 0})), 0.85 * both.ms());
  EXPECT_GT(both.ms(no_latency), 0.96 * both.ms());
  // A large batch hides all but the edges, and yet a free network gives more than is exposed: sharing the GPU costs the rest
  EXPECT_GT(largest.ms() - largest.ms(no_communication), 2 * largest.exposed_ms());
}

// ---- No number in a text that is none of these --------------------------------------------------

struct Quoted {
  std::string text;
  double value = 0, half_digit = 0;
};

// Numbers that are followed by ms or µs.
std::vector<Quoted> quoted_in(const std::string& page) {
  std::vector<Quoted> all;
  for (const char* unit : {" ms", " µs"}) {
    for (std::size_t at = page.find(unit); at != std::string::npos; at = page.find(unit, at + 1)) {
      std::size_t begin = at;
      while (begin > 0 && (std::isdigit(static_cast<unsigned char>(page[begin - 1])) != 0 || page[begin - 1] == '.')) --begin;
      if (begin == at) continue;
      const std::string number = page.substr(begin, at - begin);
      const std::size_t point = number.find('.');
      const double digits = point == std::string::npos ? 0 : static_cast<double>(number.size() - point - 1);
      all.push_back({number + unit, std::strtod(number.c_str(), nullptr), 0.5 * std::pow(10, -digits)});
    }
  }
  // In a table the unit stands in its head or at its row's begin: there every decimal counts
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.find("$") != std::string::npos) continue;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '|');) {
      const std::size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
      if (begin == std::string::npos || cell.find_first_not_of("0123456789. ") != std::string::npos) continue;
      const std::string number = cell.substr(begin, end - begin + 1);
      const std::size_t point = number.find('.');
      if (point == std::string::npos) continue;
      all.push_back({number, std::strtod(number.c_str(), nullptr), 0.5 * std::pow(10, -static_cast<double>(number.size() - point - 1))});
    }
  }
  return all;
}

// Every number of a file of figures.
std::vector<double> numbers_in(const std::string& content) {
  std::vector<double> all;
  std::istringstream words(content);
  for (std::string word; words >> word;) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (end != word.c_str()) all.push_back(value);
  }
  return all;
}

TEST(Texts, QuoteNoFigureThatIsNotComputedAnew) {
  const fs::path root = SHARDBOOK_SOURCE_DIR;
  for (const char* lab : {"01_data_parallel", "02_tensor_parallel", "04_fsdp"}) {
    std::vector<double> known = numbers_in(read(root / "labs" / lab / "figures.txt"));
    for (const fs::directory_entry& entry : fs::directory_iterator(root / "solutions" / lab)) {
      if (entry.path().extension() != ".json") continue;
      const std::vector<double> more = numbers_in(read(entry.path()));
      known.insert(known.end(), more.begin(), more.end());
    }
    ASSERT_GT(known.size(), 10u) << lab;
    for (const fs::path& file : {root / "labs" / lab / "text.md", root / "labs" / lab / "text.es.md", root / "labs" / lab / "lab.json", root / "solutions" / lab / "solution.md"}) {
      const std::string page = read(file);
      if (page.empty() && file.filename() == "text.es.md") continue;   // not translated yet
      ASSERT_NE(page, "") << file;
      for (const Quoted& quoted : quoted_in(page)) {
        const bool is_known = std::any_of(known.begin(), known.end(), [&](double value) { return std::abs(value - quoted.value) <= quoted.half_digit * 1.001; });
        EXPECT_TRUE(is_known) << file << " says " << quoted.text << ", which no run gives";
      }
    }
  }
}

TEST(Texts, QuotedNumbersAreFoundWithTheirPrecision) {
  const std::vector<Quoted> found = quoted_in("from 66.9 ms to 48 ms, 12.8 µs each; as ms");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].text, "66.9 ms");
  EXPECT_DOUBLE_EQ(found[0].half_digit, 0.05);
  EXPECT_EQ(found[2].value, 12.8);
  EXPECT_EQ(quoted_in("| tp 1, ms | 1.107 | 5 |\n")[0].value, 1.107);
}

}  // namespace
}  // namespace shardbook::labs
