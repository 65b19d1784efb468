// The figures that labs 01, 02 and 04 quote, computed anew by the profile, and the counterfactual of each "because": the cause
// is taken out of the profile, and the effect must be gone.
//
// labs/NN_name/figures.txt holds them, a line each. SHARDBOOK_WRITE_FIGURES=1 writes the files anew; without it a file that
// differs is stale, and fails. Every number of ms or µs in the texts of a lab must be one of these, of its
// facts (figures.md, which `lab lint` compares), of its exercises' own (solutions/NN_name/*.figures.json, which
// cmake/CheckExercise.cmake compares) or of the messages of its wrong answers, or stand in a `says` comment (which `figures`
// makes anew). given.txt lists those that a text assumes.
#include <algorithm>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/labs/modelled.hpp"
#include "tests/labs/pages.hpp"

namespace shardbook::labs {
namespace {

namespace fs = std::filesystem;
using Figures = std::vector<std::pair<std::string, double>>;

const simulate::Change no_communication = change({.communication = 0});
const simulate::Change no_latency = change({.latency = 0});
const simulate::Change half_host = change({.host = 0.5});

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

// What a lab says is at stake: the part of their time that eight GPUs of 3.50 USD an hour lose in the first order, to ten cents.
void expect_at_stake(const std::string& lab, double worst_ms, double best_ms) {
  char dollars[32];
  std::snprintf(dollars, sizeof dollars, "%.1f0 USD", 8 * 3.5 * (1 - best_ms / worst_ms));
  std::string comma = dollars;
  std::replace(comma.begin(), comma.end(), '.', ',');
  const fs::path folder = fs::path(SHARDBOOK_SOURCE_DIR) / "labs" / lab;
  for (const char* file : {"lab.json", "text.md", "text.es.md"}) {
    const std::string page = read(folder / file);
    EXPECT_TRUE(page.find(dollars) != std::string::npos || page.find(comma) != std::string::npos) << folder / file << " does not say " << dollars;
  }
}

// ---- Lab 00: an all-reduce over four GPUs ---------------------------------------------------------

TEST(Lab00, SizesOfTheTextAreThoseOfTheProfileAndTwoLinesMeetThem) {
  const simulate::Curve sums = Modelled(Options{}).clock().profile().collectives.at(program::OpKind::all_reduce).at(4);
  const auto us = [&](double kib) { return simulate::at(sums, static_cast<base::Bytes>(1024 * kib)) / 1e3; };
  const auto a_million_bytes = [&](double from, double to) { return (us(to) - us(from)) / (1.024e-3 * (to - from)); };
  const double mib = 1024;
  expect_known("00_timeline", {
      {"4KiB_us", us(4)}, {"512KiB_us", us(512)}, {"2MiB_us", us(2 * mib)}, {"8MiB_us", us(8 * mib)}, {"512MiB_us", us(512 * mib)},
      {"million.from.512KiB_us", a_million_bytes(512, 2 * mib)}, {"million.from.128MiB_us", a_million_bytes(128 * mib, 512 * mib)},
      {"alpha.of.large_us", us(8 * mib) - 8.388608 * a_million_bytes(8 * mib, 512 * mib)}});
  EXPECT_GT(a_million_bytes(4, 512), 2 * a_million_bytes(8 * mib, 512 * mib)) << "the large line climbs less than half as fast";
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
  EXPECT_GT(naive.ms(), 1.5 * best.ms());
  expect_at_stake("01_data_parallel", naive.ms(), best.ms());
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
  for (int width : {512, 704, 768, 1024, 2048}) {
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
  // At width 1024 it is the opposite: the network pays, the host does not. At 512 the host does not either, and stands right behind
  const Modelled wide = tutor(2, 1024);
  EXPECT_LT(wide.ms(no_communication), 0.8 * wide.ms());
  EXPECT_NEAR(wide.ms(half_host), wide.ms(), 0.02 * wide.ms());
  const Modelled between = tutor(2, 512);
  EXPECT_NEAR(between.ms(half_host), between.ms(), 0.02 * between.ms());
  EXPECT_LT(between.ms(no_communication), 0.99 * between.ms());
  EXPECT_NEAR(between.ms(no_communication), two.ms(), 1e-3) << "the host's, as at width 128";
}

// ---- Lab 03: what its choices are worth -----------------------------------------------------------

TEST(Lab03, FiguresAreThoseOfToday) {
  const auto big = [](const char* tp, Options more = {}) {
    more.insert(more.end(), {{"model", "gpt-1.3b"}, {"tp", tp}, {"sequences", "8"}});
    return Modelled(more);
  };
  const auto eight = [](Options more) {
    more.insert(more.end(), {{"model", "gpt-6.9b"}, {"fsdp", "8"}, {"sequences", "8"}});
    return Modelled(more);
  };
  const Modelled two = big("2");
  const Modelled awaited = big("2", {{"set", "tensor_parallel.input_gradient_sum=awaited"}});
  const std::vector<program::OpIndex> sums = awaited.issued().collectives();
  const double a_sum = static_cast<double>(awaited.clock().timing().took[sums.front()]) / 1e3;   // of 32 MiB, beside nothing
  expect_at_stake("03_reading", eight({{"prefetch", "0"}}).ms(), eight({}).ms());
  expect_known("03_reading", {
      {"tp1", big("1").ms()}, {"tp2", two.ms()}, {"tp2.awaited", awaited.ms()}, {"tp4", big("4").ms()},
      {"a.sum_us", a_sum}, {"sums.48", 48 * a_sum / 1e3}, {"tutor.tp1", Modelled(Options{}).ms()}, {"tutor.tp2", Modelled(Options{{"tp", "2"}}).ms()}, {"tutor.fsdp8", Modelled(Options{{"fsdp", "8"}}).ms()},
      {"fsdp8", eight({}).ms()}, {"forward.only", eight({{"set", "fsdp.backward_prefetch=none"}}).ms()}, {"no.prefetch", eight({{"prefetch", "0"}}).ms()},
      {"one.at.once", eight({{"set", "fsdp.limit_all_gathers=1"}}).ms()}});
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
  EXPECT_GT(none.ms(), 1.25 * both.ms());
  expect_at_stake("04_fsdp", none.ms(), both.ms());
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

// What stands right of the arrows of a page's `says` comments: tests/cli and `lab lint` make each anew.
std::string said_in(const std::string& page) {
  std::string all;
  std::istringstream lines(page);
  bool says = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "<!-- says") says = true;
    if (line == "-->") says = false;
    const std::size_t arrow = line.find("->");
    if (says && arrow != std::string::npos) all += line.substr(arrow + 2) + "\n";
  }
  return all;
}

std::vector<fs::path> pages_of(const fs::path& lab) {
  const fs::path solutions = fs::path(SHARDBOOK_SOURCE_DIR) / "solutions", reference = solutions / (lab.filename().string().substr(0, 2) + "-reading-ref.md");
  std::vector<fs::path> pages{lab / "lab.json", lab / "text.md", solutions / lab.filename() / "solution.md"};
  if (fs::exists(reference)) pages.push_back(reference);   // of lab 03
  if (fs::exists(lab / "text.es.md")) pages.push_back(lab / "text.es.md");   // where it is translated
  return pages;
}

// All figures of a lab that some run or check gives.
std::vector<double> known_of(const fs::path& lab) {
  std::vector<fs::path> files{lab / "figures.txt", lab / "figures.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(SHARDBOOK_SOURCE_DIR) / "solutions" / lab.filename())) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  const std::string number = lab.filename().string().substr(0, 2);
  std::string all;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(SHARDBOOK_SOURCE_DIR) / "tests/data/labs")) {
    if (!entry.is_regular_file() || !entry.path().parent_path().filename().string().starts_with(number)) continue;
    const std::string message = read(entry.path());   // its first line is what a trial finds
    all += message.substr(0, message.find('\n')) + "\n";
  }
  for (const fs::path& file : files) all += read(file) + "\n";
  for (const fs::path& page : pages_of(lab)) all += said_in(read(page));
  return numbers_in(all);
}

// A number that a text assumes, and no run gives.
struct Given {
  std::string file, text;
  bool is_there = false;
};

std::vector<Given> given_numbers() {
  std::vector<Given> all;
  std::istringstream lines(read(fs::path(SHARDBOOK_SOURCE_DIR) / "tests/labs/given.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t first = line.find(" | "), last = line.rfind(" | ");
    if (first == std::string::npos || first == last) ADD_FAILURE() << "not 'file | number | why': " << line;
    else all.push_back({line.substr(0, first), line.substr(first + 3, last - first - 3)});
  }
  return all;
}

TEST(Texts, QuoteNoFigureThatIsNotComputedAnew) {
  std::size_t labs = 0, quotes = 0;
  std::vector<Given> given = given_numbers();
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(SHARDBOOK_SOURCE_DIR) / "labs")) {
    if (!fs::exists(entry.path() / "lab.json")) continue;
    ++labs;
    const std::vector<double> known = known_of(entry.path());
    for (const fs::path& file : pages_of(entry.path())) {
      const std::string page = read(file);
      EXPECT_NE(page, "") << file;
      for (const Quoted& quoted : quoted_in(page)) {
        ++quotes;
        const bool is_known = std::any_of(known.begin(), known.end(), [&](double value) { return std::abs(value - quoted.value) <= quoted.half_digit * 1.001; });
        bool is_given = false;
        for (Given& one : given) {
          const bool means = one.text == quoted.text && file == fs::path(SHARDBOOK_SOURCE_DIR) / one.file;
          one.is_there = one.is_there || means;
          is_given = is_given || means;
        }
        EXPECT_TRUE(is_known || is_given) << file << " says " << quoted.text << ", which no run gives; what a text assumes stands in tests/labs/given.txt";
      }
    }
  }
  for (const Given& one : given) EXPECT_TRUE(one.is_there) << one.file << " says nowhere " << one.text << ", as tests/labs/given.txt has it";
  EXPECT_GE(labs, 5u);
  EXPECT_GT(quotes, 100u);
}

// What is shown with a part is shown with each of its faults: a figure of one fault's check must be one of the others' too.
TEST(Texts, OfAPartWithSeveralFaultsQuoteTheFigureOfNoneAlone) {
  int faults = 0, quotes = 0;
  for (const fs::directory_entry& lab : fs::directory_iterator(fs::path(SHARDBOOK_SOURCE_DIR) / "labs")) {
    const std::string json = fs::exists(lab.path() / "lab.json") ? read(lab.path() / "lab.json") : "", id = "\"id\": \"" + lab.path().filename().string().substr(0, 2);
    for (std::size_t at = json.find(id, json.find("\"parts\"")); at != std::string::npos; at = json.find(id, at + 1)) {
      const std::string part = json.substr(at, json.find(id, at + 1) - at), name = part.substr(7, 3);
      const fs::path solutions = fs::path(SHARDBOOK_SOURCE_DIR) / "solutions" / lab.path().filename();
      std::vector<std::vector<double>> found{numbers_in(read(solutions / (name + ".figures.json")))};
      for (int seed = 1; fs::exists(solutions / (name + "_" + std::to_string(seed) + ".figures.json")); ++seed) found.push_back(numbers_in(read(solutions / (name + "_" + std::to_string(seed) + ".figures.json"))));
      EXPECT_EQ(part.find("\"by_seed\"") != std::string::npos, found.size() > 1) << name;
      faults += static_cast<int>(found.size()) - 1;
      if (found.size() == 1) continue;
      for (const Quoted& quoted : quoted_in(part)) {
        ++quotes;
        const auto gives = [&](const std::vector<double>& figures) { return std::any_of(figures.begin(), figures.end(), [&](double value) { return std::abs(value - quoted.value) <= quoted.half_digit * 1.001; }); };
        const auto giving = std::count_if(found.begin(), found.end(), gives);
        EXPECT_TRUE(giving == 0 || giving == static_cast<std::ptrdiff_t>(found.size())) << name << " says " << quoted.text << ", and not each of its faults gives that";
      }
    }
  }
  EXPECT_GE(faults, 1);
  EXPECT_GE(quotes, 1);
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
