#include "engine/cli/bench_side.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/base/json.hpp"
#include "engine/cli/console.hpp"

namespace shardbook::cli {

using base::text;

double Side::step_ns() const {
  std::vector<double> sorted = steps;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.empty() ? 0 : sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

void Side::add(double step, double from, double to) {
  least = steps.empty() ? from : std::min(least, from);
  most = std::max(most, to);
  steps.push_back(step);
}

int peer_steps(int asked, int of_shape) { return asked > 0 ? std::clamp(asked, 16, 40) : std::clamp(of_shape, 32, 40); }

bool add_figures(const std::string& said, Side& side) {
  nlohmann::json figures;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json read = base::try_parse_json(line);
    if (read.is_object() && read.contains("step_ns")) figures = std::move(read);
  }
  if (figures.is_null()) return false;
  side.name = figures.value("name", side.name);
  side.add(figures.value("step_ns", 0.0), figures.value("step_min_ns", 0.0), figures.value("step_max_ns", 0.0));
  side.peak_bytes = figures.value("peak_bytes", 0.0);
  side.busy_ns = figures.value("busy_ns", -1.0);
  side.computing_ns = figures.value("computing_ns", -1.0);
  side.versions = figures.value("versions", nlohmann::json::object());
  return true;
}

std::string busy_sentence(const Side& peer, const Side& ours) {
  if (peer.busy_ns < 0 || peer.computing_ns < 0 || ours.step_ns() <= 0) return std::string();
  return text("its GPU is busy for ", short_ms(peer.busy_ns), " ms of a profiled step, ", short_ms(peer.computing_ns), " without NCCL's kernels: ",
              fixed(peer.busy_ns / ours.step_ns(), 2), " and ", fixed(peer.computing_ns / ours.step_ns(), 2), " × our step");
}

nlohmann::json json_of(const Side& side) {
  nlohmann::json json = {{"step_ns", side.step_ns()}, {"step_min_ns", side.least}, {"step_max_ns", side.most}, {"turns_ns", side.steps},
                         {"peak_bytes", side.peak_bytes}, {"failure", side.failure}, {"versions", side.versions}};
  if (!side.name.empty()) json["name"] = side.name;
  if (side.mfu >= 0) json["mfu"] = side.mfu;
  if (side.exposed_share >= 0) json["exposed_share"] = side.exposed_share;
  if (side.overlap >= 0) json["overlap"] = side.overlap;
  if (side.busy_ns >= 0) json["busy_ns"] = side.busy_ns;
  if (side.computing_ns >= 0) json["computing_ns"] = side.computing_ns;
  return json;
}

std::string short_ms(double ns) {
  const double value = ns / 1e6;
  return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace shardbook::cli
