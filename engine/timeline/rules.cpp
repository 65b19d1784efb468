// timeline/rules: the rules of Perfetto and HTA, one paragraph each; see rules.hpp.
#include "engine/timeline/rules.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "engine/base/check.hpp"
#include "engine/base/json.hpp"

namespace shardbook::timeline {
namespace {

using nlohmann::json;
using base::text;

constexpr std::size_t most_violations = 20;

struct Row {
  std::size_t index;
  double start, end;
};

// HTA's classification by name (hta/common/types.py has it as regular expressions).
bool has(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }
bool hta_communication(const std::string& name) {
  return name.starts_with("nccl") || name.starts_with("hip") || name.starts_with("hccl") || has(name, "ncclKernel");
}
bool hta_compute(const std::string& name) {
  const std::size_t cuda = name.find("cuda");
  const bool launches = cuda != std::string::npos && name.find("LaunchKernel", cuda + 4) != std::string::npos;
  const bool moves = has(name, "Memcpy") || has(name, "Memset") || has(name, "dma");
  const bool waits = has(name, "Sync") || name.starts_with("Stream Wait Event");
  return !launches && !moves && !waits && !hta_communication(name);
}

// The first "rank": N with a blank, where the file has one: where it begins, and N.
struct RankSaid {
  std::size_t at;
  int rank;
};
std::optional<RankSaid> first_rank(const std::string& content) {
  constexpr std::string_view key = "\"rank\":";
  for (std::size_t at = content.find(key); at != std::string::npos; at = content.find(key, at + 1)) {
    const std::size_t blank = at + key.size(), number = content.find_first_not_of(" \t\r\n", blank);
    if (number == std::string::npos || number == blank || std::isdigit(static_cast<unsigned char>(content[number])) == 0) continue;
    int rank = 0;
    if (std::from_chars(content.data() + number, content.data() + content.size(), rank).ec == std::errc{}) return RankSaid{at, rank};
  }
  return std::nullopt;
}

class Checker {
 public:
  std::vector<std::string> check(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream whole;
    whole << file.rdbuf();
    content_ = whole.str();
    document_ = base::try_parse_json(content_);
    // A raw control character in a name (rule 9) makes the text invalid, too.
    if (document_.is_discarded()) return {path + " is not valid JSON"};
    if (!document_.contains("traceEvents") || !document_["traceEvents"].is_array()) return {path + " has no traceEvents"};
    check_top(path);
    const json& events = document_["traceEvents"];
    for (std::size_t i = 0; i < events.size(); ++i) check_event(i, events[i]);
    check_correlations();
    check_steps();
    check_nesting();
    return std::move(found_);
  }

 private:
  template <class... Pieces>
  void broken(int rule, const Pieces&... pieces) {
    if (found_.size() < most_violations) found_.push_back(text("rule ", rule, ": ", pieces...));
  }

  // Rules 1, 2, 3: the name, the rank with a blank, one base, a metadata event first.
  void check_top(const std::string& path) {
    if (!path.ends_with(".json")) broken(1, path, " does not end in .json");
    if (const auto said = first_rank(content_); !said) {
      broken(1, "no \"rank\": N with a blank");
    } else {
      if (content_.find("\"rank\"") != said->at) broken(1, "another \"rank\" stands before \"rank\": N");
      const json info = document_.value("distributedInfo", json::object());
      if (info.value("rank", -1) != said->rank) broken(1, "distributedInfo.rank is not the first \"rank\"");
    }
    if (!document_.contains("baseTimeNanoseconds")) broken(2, "no baseTimeNanoseconds");
    const json& events = document_["traceEvents"];
    if (events.empty() || events[0].value("ph", "") != "M") broken(3, "the first event is no metadata event");
  }

  void check_event(std::size_t i, const json& event) {
    const std::string phase = event.value("ph", "");
    if (!event.contains("pid") || !event["pid"].is_number_integer()) return broken(7, "event ", i, " has no numeric pid");
    if (!event.contains("tid") || !event["tid"].is_number_integer()) return broken(4, "event ", i, " has no numeric tid");
    const auto pid = event["pid"].get<std::int64_t>();
    const auto tid = event["tid"].get<std::int64_t>();
    if (tid == 0) broken(4, "event ", i, " has tid 0, which Perfetto takes for its process");
    const std::string name = event.value("name", "");
    if (phase == "s" || phase == "f") (phase == "s" ? flow_starts_ : flow_ends_).insert(event.value("id", std::int64_t{-1}));
    if (phase != "X") return;

    // Rule 2: times in microseconds, from a base that a double can hold.
    if (!event.contains("ts") || !event.contains("dur")) return broken(2, "event ", i, " has no ts or dur");
    const double start = event["ts"], duration = event["dur"];
    if (duration < 0) broken(2, "event ", i, " has a negative dur");
    if (start < 0 || start > 9e12) broken(2, "event ", i, " has ts ", start, ", which is not relative to the base");
    rows_[{pid, tid}].push_back({i, std::round(start * 1000), std::round(start * 1000) + std::round(duration * 1000)});

    // Rule 5: Kineto's categories.
    static const std::set<std::string> categories{
        "cpu_op", "user_annotation", "gpu_user_annotation", "cuda_runtime", "cuda_driver", "kernel",
        "gpu_memcpy", "gpu_memset", "cuda_sync", "python_function", "overhead"};
    const std::string cat = event.value("cat", "");
    if (!categories.contains(cat)) broken(5, "event ", i, " has category \"", cat, "\"");
    const json args = event.value("args", json::object());
    const auto correlation = args.value("correlation", std::int64_t{0});
    const bool on_device = cat == "kernel" || cat == "gpu_memcpy" || cat == "gpu_memset";
    const bool is_call = cat == "cuda_runtime" || cat == "cuda_driver";
    if (is_call && correlation != 0) calls_.insert({correlation, i});
    if ((on_device || cat == "cuda_sync") && correlation != 0) launched_.insert({correlation, i});
    if (is_call) host_pids_.insert(pid);
    if (on_device) device_pids_.insert(pid);

    // Rule 4: streams have numbers above 0. Rule 9: names and classes agree.
    if (on_device) {
      if (args.value("stream", std::int64_t{-1}) <= 0) broken(4, "event ", i, " (", name, ") has no stream above 0");
      if (!args.contains("clock")) broken(9, "event ", i, " (", name, ") does not say its clock");
      const bool collective = args.contains("Collective name");
      if (cat == "kernel" && collective && !(name.starts_with("nccl") && hta_communication(name))) {
        broken(9, "event ", i, " is a collective named ", name, ", without nccl in front");
      }
      if (cat == "kernel" && !name.starts_with("nccl") && !hta_compute(name)) {
        broken(9, "event ", i, " computes but is named ", name, ", which HTA does not count as compute");
      }
      if (cat == "gpu_memcpy" && !name.starts_with("Memcpy")) broken(9, "event ", i, " copies but is named ", name);
      if (cat == "gpu_memset" && !name.starts_with("Memset")) broken(9, "event ", i, " fills but is named ", name);
    }
    if (name.starts_with("ProfilerStep#")) steps_.push_back({i, start, start + duration});
  }

  // Rules 3, 5: a correlation pairs one call with one device row.
  void check_correlations() {
    for (const auto* table : {&calls_, &launched_}) {
      for (auto entry = table->begin(); entry != table->end(); ++entry) {
        const auto next = std::next(entry);
        if (next != table->end() && next->first == entry->first) {
          broken(5, "events ", entry->second, " and ", next->second, " share correlation ", entry->first);
        }
      }
    }
    for (const auto& [correlation, i] : launched_) {
      if (!calls_.empty() && !calls_.contains(correlation)) broken(5, "event ", i, " has correlation ", correlation, " without a call");
    }
    if (flow_starts_ != flow_ends_) broken(5, "the arrows from calls to device rows do not pair up");
    for (std::int64_t pid : device_pids_) {
      if (host_pids_.contains(pid)) broken(7, "host and device rows share pid ", pid);
    }
  }

  // Rule 6: steps follow each other, and there is a closing one.
  void check_steps() {
    if (steps_.size() == 1) broken(6, "one ProfilerStep only: HTA leaves the last one out");
    std::sort(steps_.begin(), steps_.end(), [](const Row& a, const Row& b) { return a.start < b.start; });
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      if (steps_[i].start < steps_[i - 1].end - 0.0005) broken(6, "steps overlap at event ", steps_[i].index);
    }
  }

  // Rule 8: rows of one (pid, tid) nest.
  void check_nesting() {
    for (auto& [thread, rows] : rows_) {
      std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        return a.start != b.start ? a.start < b.start : a.end > b.end;
      });
      std::vector<Row> open;
      for (const Row& row : rows) {
        while (!open.empty() && open.back().end <= row.start) open.pop_back();
        if (!open.empty() && row.end > open.back().end) {
          broken(8, "events ", open.back().index, " and ", row.index, " overlap without nesting on tid ", thread.second);
        }
        open.push_back(row);
      }
    }
  }

  std::string content_;
  json document_;
  std::vector<std::string> found_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Row>> rows_;
  std::multimap<std::int64_t, std::size_t> calls_, launched_;
  std::multiset<std::int64_t> flow_starts_, flow_ends_;
  std::set<std::int64_t> host_pids_, device_pids_;
  std::vector<Row> steps_;
};

}  // namespace

std::vector<std::string> violations(const std::string& path) { return Checker().check(path); }

}  // namespace shardbook::timeline
