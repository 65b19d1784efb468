// labs/00_timeline/harness/fit: is this function the time of an all-reduce?
//
// What is right is the machine profile's own measured points: nine sizes, of which the learner was given four. A seed adds
// sizes between them, read off the profile's curve, so that nine cases are no answer.
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/simulate/profile.hpp"
#include "labs/00_timeline/lab.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab00 {

namespace {

constexpr double allowed = 0.15;
constexpr const char* page = "labs/00_timeline/text.md";
constexpr const char* file = "experiments/00_timeline/fit.cpp";

struct Point {
  double bytes = 0, measured_us = 0, said_us = 0;
  double error() const { return said_us / measured_us - 1; }
};

std::string print(const char* format, double first, double second = 0, double third = 0) {
  char out[240];
  std::snprintf(out, sizeof out, format, first, second, third);
  return out;
}

std::string size_text(double bytes) {
  return bytes < MiB ? print("%.4g KiB", bytes / KiB) : print("%.4g MiB", bytes / MiB);
}

std::string percent(double part) { return print(part < 0 ? "−%.0f %%" : "+%.0f %%", std::fabs(100 * part)); }

// "At 2 MiB you say 18.6 µs and 27.2 were measured (−32 %)"
std::string beside(const Point& point) {
  return "At " + size_text(point.bytes) + print(" you say %.3g µs and %.3g were measured (", point.said_us, point.measured_us) + percent(point.error()) + ")";
}

std::vector<Point> points_of(const simulate::Curve& curve, std::uint64_t seed, bool seeded) {
  std::vector<Point> points;
  for (const simulate::CurvePoint& one : curve) points.push_back({static_cast<double>(one.bytes), one.ns / 1e3, 0});
  if (seeded) {
    std::mt19937_64 draw(seed);
    const double low = std::log(points.front().bytes), high = std::log(points.back().bytes);
    for (int i = 0; i < 4; ++i) {
      const double part = static_cast<double>(draw() >> 11) / 9007199254740992.0;
      const auto bytes = static_cast<base::Bytes>(std::exp(low + part * (high - low)));
      points.push_back({static_cast<double>(bytes), simulate::at(curve, bytes) / 1e3, 0});
    }
  }
  for (Point& point : points) point.said_us = all_reduce_us(point.bytes);
  return points;
}

// The same cost a byte everywhere.
bool is_one_line(const std::vector<Point>& points) {
  const double slope = (points[8].said_us - points[0].said_us) / (points[8].bytes - points[0].bytes);
  for (int i = 1; i < 8; ++i) {
    const double expected = points[0].said_us + slope * (points[i].bytes - points[0].bytes);
    if (std::fabs(points[i].said_us - expected) > 1e-6 * std::fabs(expected)) return false;
  }
  return true;
}

const Point& worst_of(const std::vector<Point>& points) {
  const Point* worst = &points.front();
  for (const Point& point : points) {
    if (std::fabs(point.error()) > std::fabs(worst->error())) worst = &point;
  }
  return *worst;
}

// Between two measured sizes, µs a million bytes.
double cost_of_a_byte(const Point& from, const Point& to) { return (to.measured_us - from.measured_us) / (to.bytes - from.bytes) * 1e6; }

labs::Finding finding(const std::string& rule, const std::string& message) {
  labs::Finding one;
  one.rule = rule;
  one.message = message;
  one.where.file = file;
  one.page = page;
  return one;
}

void judge_points(const std::vector<Point>& points, labs::Verdict& verdict) {
  const Point& worst = worst_of(points);
  const Point &smallest = points[0], &largest = points[8];
  for (const Point& point : points) {
    if (!std::isfinite(point.said_us)) return verdict.fail(finding("number", "At " + size_text(point.bytes) + " your function returns no number: is something divided by zero?"));
  }
  for (const double unit : {1e3, 1e-3, 1e6, 1e-6}) {
    if (std::fabs(smallest.error() + 1 - unit) < 0.3 * unit && std::fabs(largest.error() + 1 - unit) < 0.3 * unit) {
      return verdict.fail(finding("unit", beside(largest) + print(": all of yours are %g times that. The function returns microseconds, of bytes", unit)));
    }
  }
  if (std::fabs(worst.error()) <= allowed) return;
  if (smallest.error() < -0.5) {
    return verdict.fail(finding("latency", beside(smallest) + ": a call costs its start, α, however few its bytes; bandwidth alone gives none"));
  }
  if (is_one_line(points)) {
    return verdict.fail(finding("one_line", beside(worst) + print(": one line cannot do it. From 512 KiB to 2 MiB a million bytes cost %.1f µs, "
        "from 128 to 512 MiB %.1f", cost_of_a_byte(points[3], points[4]), cost_of_a_byte(points[7], points[8]))));
  }
  if (smallest.error() > allowed) {
    return verdict.fail(finding("crossing", beside(smallest) + ": the line of large buffers meets 0 bytes far above α. Below where the two lines cross "
        "the other one holds"));
  }
  if (largest.error() > allowed) {
    return verdict.fail(finding("large", beside(largest) + ": large buffers move faster than the small ones let one think; their line goes through 8 MiB and 512 MiB"));
  }
  verdict.fail(finding("worst", beside(worst) + print("; %.0f %% are allowed at each of the sizes", 100 * allowed)));
}

void judge(const labs::Request& request, labs::Verdict& verdict) {
  const base::Result<simulate::Profile> profile = simulate::find_profile("h200x8");
  SHARDBOOK_CHECK(profile.ok(), profile.ok() ? "" : profile.error());
  const simulate::Curve& curve = profile.value().collectives.at(program::OpKind::all_reduce).at(4);
  SHARDBOOK_CHECK(curve.size() == 9, "the profile has ", curve.size(), " sizes and not nine");
  const std::vector<Point> points = points_of(curve, request.seed, request.seed != labs::Request{}.seed);
  verdict.figure("all_reduce_32MiB_us", simulate::at(curve, static_cast<base::Bytes>(32 * MiB)) / 1e3);
  verdict.figure("worst_error_percent", 100 * std::fabs(worst_of(points).error()));
  judge_points(points, verdict);
}

}  // namespace

}  // namespace shardbook::lab00

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab00::judge); }
