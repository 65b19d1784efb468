#include "engine/simulate/profile.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "engine/simulate/built_in.hpp"

namespace shardbook::simulate {

double at(const Curve& curve, base::Bytes bytes) {
  SHARDBOOK_CHECK(!curve.empty(), "a curve without points was asked for ", bytes, " bytes");
  if (bytes <= curve.front().bytes) return curve.front().ns;
  const CurvePoint& last = curve.back();
  if (bytes >= last.bytes) return last.ns * static_cast<double>(bytes) / static_cast<double>(last.bytes);
  const auto above = std::lower_bound(curve.begin(), curve.end(), bytes,
                                      [](const CurvePoint& point, base::Bytes wanted) { return point.bytes < wanted; });
  const CurvePoint& high = *above;
  const CurvePoint& low = *(above - 1);
  const double part = std::log(static_cast<double>(bytes) / static_cast<double>(low.bytes)) /
                      std::log(static_cast<double>(high.bytes) / static_cast<double>(low.bytes));
  return low.ns * std::pow(high.ns / low.ns, part);
}

std::string curve_of_heads(const program::OpDesc& attention) { return base::text(attention.name, "/", attention.gemm.k); }

bool operator==(const GemmPoint& left, const GemmPoint& right) {
  return left.size.m == right.size.m && left.size.n == right.size.n && left.size.k == right.size.k &&
         left.size.batch == right.size.batch && left.ns == right.ns && left.beside_ns == right.beside_ns;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const BuiltIn& profile : built_in_profiles()) names.emplace_back(profile.name);
  return names;
}

base::Result<Profile> find_profile(const std::string& name_or_path) {
  std::string known;
  for (const BuiltIn& profile : built_in_profiles()) {
    if (name_or_path == profile.name) return profile_from_json(profile.json, base::text("profile ", profile.name));
    known += known.empty() ? profile.name : std::string(", ") + profile.name;
  }
  std::ifstream file(name_or_path);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  if (!file || content.tellp() <= 0) {
    return base::Error{base::text("no machine profile is named '", name_or_path, "' and no such file can be read; known are ",
                                  known, ", and `calibrate` writes a file for the node at hand")};
  }
  return profile_from_json(content.str(), name_or_path);
}

base::Status save_profile(const Profile& profile, const std::string& path) {
  const std::string beside = path + ".tmp";
  errno = 0;
  {
    std::ofstream file(beside, std::ios::binary);
    file << to_json(profile);
    file.close();
    if (file && std::rename(beside.c_str(), path.c_str()) == 0) return base::Done{};
  }
  const int why = errno;
  std::remove(beside.c_str());
  return base::Error{base::text("cannot write the profile ", path, ": ", std::strerror(why))};
}

}  // namespace shardbook::simulate
