// simulate/profile_json: a Profile as text and back.
//
// Tables are lists of short lists, one a line: [bytes, ns] and [m, n, k, batch, ns]. Reading is strict: what is
// missing, unknown, of another type or out of order is an error that names the file and the key, since a
// profile with a misspelt key would give wrong times in silence.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/simulate/profile.hpp"

namespace shardbook::simulate {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kernel_kinds[] = {"pointwise", "reduction", "lookup", "copy", "fill"};
constexpr base::DType gemm_dtypes[] = {base::DType::bf16, base::DType::f32};
constexpr program::OpKind collective_kinds[] = {
    program::OpKind::all_reduce, program::OpKind::all_gather, program::OpKind::reduce_scatter,
    program::OpKind::all_to_all, program::OpKind::broadcast,  program::OpKind::send,
    program::OpKind::recv,       program::OpKind::shift};

// One list of plain numbers is one line; everything else is indented.
void print(const Json& json, const std::string& indent, std::string& out) {
  const bool flat = !json.is_structured() || json.empty() ||
                    (json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& entry) { return entry.is_number(); }));
  if (flat) {
    out += base::json_text_or_throw(json);
    return;
  }
  const std::string inner = indent + "  ";
  out += json.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out += inner;
    if (json.is_object()) out += base::json_text_or_throw(Json(key)) + ": ";
    print(value, inner, out);
  }
  out += "\n" + indent + (json.is_array() ? "]" : "}");
}

Json curve_to_json(const Curve& curve) {
  Json json = Json::array();
  for (const CurvePoint& point : curve) json.push_back({point.bytes, point.ns});
  return json;
}

Json curves_to_json(const std::map<int, Curve>& by_ranks) {
  Json json = Json::object();
  for (const auto& [ranks, curve] : by_ranks) json[std::to_string(ranks)] = curve_to_json(curve);
  return json;
}

// --- Reading -------------------------------------------------------------------------------------

// Thrown within this file; profile_from_json makes the sentence.
struct Malformed {
  std::string what;
};

// An object whose keys must all be asked for.
class Fields {
 public:
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) throw Malformed{base::text(path_.empty() ? "the whole" : path_, " is no object")};
  }
  std::string path(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  const Json& any(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end()) throw Malformed{base::text("key ", path(key), " is missing")};
    ++read_;
    seen_.push_back(key);
    return *found;
  }
  double number(const char* key, double at_least) {
    const Json& value = any(key);
    if (!value.is_number()) throw Malformed{base::text("key ", path(key), " is no number")};
    if (!(value.get<double>() >= at_least)) throw Malformed{base::text("key ", path(key), " is below ", at_least)};
    return value.get<double>();
  }
  int whole(const char* key, int at_least) {
    const Json& value = any(key);
    if (!value.is_number_integer()) throw Malformed{base::text("key ", path(key), " is no whole number")};
    if (value.get<int>() < at_least) throw Malformed{base::text("key ", path(key), " is below ", at_least)};
    return value.get<int>();
  }
  std::string text(const char* key) {
    const Json& value = any(key);
    if (!value.is_string()) throw Malformed{base::text("key ", path(key), " is no text")};
    return value.get<std::string>();
  }
  void nothing_else() const {
    if (read_ == json_.size()) return;
    for (const auto& [key, value] : json_.items()) {
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
        throw Malformed{base::text("key ", path(key), " is not known")};
      }
    }
  }

 private:
  const Json& json_;
  std::string path_;
  std::size_t read_ = 0;
  std::vector<std::string> seen_;
};

// A row of a table: exactly so many numbers, all positive.
void check_row(const Json& row, std::size_t numbers, const std::string& path) {
  bool good = row.is_array() && row.size() == numbers;
  for (std::size_t at = 0; good && at < numbers; ++at) good = row[at].is_number() && row[at].get<double>() > 0;
  if (!good) throw Malformed{base::text("a row of ", path, " is not ", numbers, " positive numbers")};
}

Curve curve_from_json(const Json& json, const std::string& path) {
  if (!json.is_array() || json.empty()) throw Malformed{base::text("table ", path, " is empty")};
  Curve curve;
  for (const Json& row : json) {
    check_row(row, 2, path);
    curve.push_back({row[0].get<base::Bytes>(), row[1].get<double>()});
    if (curve.size() > 1 && curve.back().bytes <= curve[curve.size() - 2].bytes) {
      throw Malformed{base::text("table ", path, " is not ascending in bytes at ", curve.back().bytes)};
    }
  }
  return curve;
}

GemmTable gemm_from_json(const Json& json, const std::string& path) {
  Fields fields(json, path);
  GemmTable table;
  table.peak_flops_per_ns = fields.number("peak_flops_per_ns", 1e-9);
  table.fixed_ns = fields.number("fixed_ns", 0);
  const Json& points = fields.any("points");
  if (!points.is_array()) throw Malformed{base::text("table ", path, ".points is no list")};
  for (const Json& row : points) {
    const bool has_beside = row.is_array() && row.size() == 6;
    check_row(row, has_beside ? 6 : 5, path + ".points");
    table.points.push_back({{row[0].get<std::int64_t>(), row[1].get<std::int64_t>(), row[2].get<std::int64_t>(),
                             row[3].get<std::int64_t>()},
                            row[4].get<double>(), has_beside ? row[5].get<double>() : 0});
  }
  fields.nothing_else();
  return table;
}

int ranks_of(const std::string& key, const std::string& path) {
  const int ranks = std::atoi(key.c_str());
  if (ranks < 2 || std::to_string(ranks) != key) throw Malformed{base::text("key ", path, ".", key, " is no number of ranks from 2 on")};
  return ranks;
}

std::map<int, Curve> curves_by_ranks(const Json& json, const std::string& path) {
  if (!json.is_object() || json.empty()) throw Malformed{base::text("table ", path, " is empty")};
  std::map<int, Curve> curves;
  for (const auto& [key, value] : json.items()) curves[ranks_of(key, path)] = curve_from_json(value, path + "." + key);
  return curves;
}

void read_host(HostCosts& host, const Json& json) {
  Fields fields(json, "host");
  host.kernel_ns = fields.number("kernel_ns", 0);
  host.gemm_ns = fields.number("gemm_ns", 0);
  host.copy_ns = fields.number("copy_ns", 0);
  host.collective_ns = fields.number("collective_ns", 0);
  host.record_ns = fields.number("record_ns", 0);
  host.wait_ns = fields.number("wait_ns", 0);
  host.host_wait_ns = fields.number("host_wait_ns", 0);
  host.step_ns = fields.number("step_ns", 0);
  host.trace_ns = fields.number("trace_ns", 0);
  if (json.contains("graph_ns")) host.graph_ns = fields.number("graph_ns", 0);
  fields.nothing_else();
}

void read_device(DeviceCosts& device, const Json& json) {
  Fields fields(json, "device");
  device.name = fields.text("name");
  device.multiprocessors = fields.whole("multiprocessors", 1);
  device.launch_latency_ns = fields.number("launch_latency_ns", 0);
  device.stream_gap_ns = fields.number("stream_gap_ns", 0);
  device.event_latency_ns = fields.number("event_latency_ns", 0);
  device.memory_bytes_per_ns = fields.number("memory_bytes_per_ns", 1e-9);
  device.trace_ns = fields.number("trace_ns", 0);
  if (json.contains("graph_gap_ns")) device.graph_gap_ns = fields.number("graph_gap_ns", 0);
  if (json.contains("graph_collective_gap_ns")) device.graph_collective_gap_ns = fields.number("graph_collective_gap_ns", 0);
  if (json.contains("graph_event_latency_ns")) device.graph_event_latency_ns = fields.number("graph_event_latency_ns", 0);
  fields.nothing_else();
}

void read_contention(std::vector<Contention>& contention, const Json& json, const std::string& key) {
  if (!json.is_array()) throw Malformed{"key " + key + " is no list"};
  for (const Json& entry : json) {
    Fields fields(entry, base::text(key, "[", contention.size(), "]"));
    Contention& factors = contention.emplace_back();
    factors.ranks = fields.whole("ranks", 2);
    factors.gemm_by_collective = fields.number("gemm_by_collective", 1);
    factors.collective_by_gemm = fields.number("collective_by_gemm", 1);
    factors.memory_by_collective = fields.number("memory_by_collective", 1);
    factors.collective_by_memory = fields.number("collective_by_memory", 1);
    fields.nothing_else();
    if (contention.size() > 1 && factors.ranks <= contention[contention.size() - 2].ranks) {
      throw Malformed{"table " + key + " is not ascending in ranks"};
    }
  }
}

Json contention_to_json(const std::vector<Contention>& contention) {
  Json out = Json::array();
  for (const Contention& factors : contention) {
    out.push_back({{"ranks", factors.ranks},
                   {"gemm_by_collective", factors.gemm_by_collective},
                   {"collective_by_gemm", factors.collective_by_gemm},
                   {"memory_by_collective", factors.memory_by_collective},
                   {"collective_by_memory", factors.collective_by_memory}});
  }
  return out;
}

void read_power(PowerCosts& power, const Json& json) {
  Fields fields(json, "power");
  power.exponent = fields.number("exponent", 0);
  power.idle = fields.number("idle", 0);
  power.communication = fields.number("communication", 0);
  power.memory = fields.number("memory", 0);
  power.fastest = fields.number("fastest", 1);
  if (json.contains("train")) power.train = fields.number("train", 1e-3);
  if (json.contains("multiplying")) power.multiplying = fields.number("multiplying", 0);
  if (json.contains("moving")) power.moving = fields.number("moving", 0);
  fields.nothing_else();
}

void read_windows(Windows& windows, const Json& json) {
  Fields fields(json, "windows");
  const Json& collectives = fields.any("collectives");
  Fields by_kind(collectives, "windows.collectives");
  for (program::OpKind kind : collective_kinds) {
    const char* name = program::name_of(kind);
    if (collectives.contains(name)) windows.collectives[kind] = curves_by_ranks(by_kind.any(name), by_kind.path(name));
  }
  by_kind.nothing_else();
  if (!windows.collectives.contains(program::OpKind::all_gather)) throw Malformed{"table windows.collectives has no all_gather"};
  if (json.contains("contention")) read_contention(windows.contention, fields.any("contention"), "windows.contention");
  if (json.contains("fit")) {
    const Json& by_matmul = fields.any("fit");
    const Fields only_objects(by_matmul, "windows.fit");
    for (const auto& [matmul, kinds] : by_matmul.items()) {
      std::set<program::OpKind>& fit = windows.fit[matmul];
      for (program::OpKind kind : collective_kinds) {
        if (kinds.is_array() && std::find(kinds.begin(), kinds.end(), program::name_of(kind)) != kinds.end()) fit.insert(kind);
      }
      if (!kinds.is_array() || fit.size() != kinds.size()) throw Malformed{"key windows.fit." + matmul + " is no list of different collectives"};
    }
  }
  fields.nothing_else();
}

void read_tables(Profile& profile, Fields& fields) {
  // Matmuls, by type.
  Fields gemm(fields.any("gemm"), "gemm");
  for (base::DType dtype : gemm_dtypes) {
    profile.gemm[dtype] = gemm_from_json(gemm.any(base::name_of(dtype)), gemm.path(base::name_of(dtype)));
  }
  gemm.nothing_else();

  // Kernels, by name or kind; each kind must be there.
  const Json& kernels = fields.any("kernels");
  Fields kinds(kernels, "kernels");
  for (const char* kind : kernel_kinds) kinds.any(kind);
  for (const auto& [name, curve] : kernels.items()) profile.kernels[name] = curve_from_json(curve, kinds.path(name));

  // Collectives: none (a node of one GPU), or at least the three that training needs.
  const Json& collectives = fields.any("collectives");
  Fields by_kind(collectives, "collectives");
  for (program::OpKind kind : collective_kinds) {
    const char* name = program::name_of(kind);
    const bool needed = kind <= program::OpKind::reduce_scatter && !collectives.empty();
    if (!needed && !collectives.contains(name)) continue;
    profile.collectives[kind] = curves_by_ranks(by_kind.any(name), by_kind.path(name));
  }
  by_kind.nothing_else();
}

}  // namespace

std::string to_json(const Profile& profile) {
  Json json;
  json["name"] = profile.name;
  json["made_at"] = profile.made_at;
  json["origin"] = profile.origin;
  json["step_error"] = profile.step_error;
  json["host"] = {{"kernel_ns", profile.host.kernel_ns},         {"gemm_ns", profile.host.gemm_ns},
                  {"copy_ns", profile.host.copy_ns},             {"collective_ns", profile.host.collective_ns},
                  {"record_ns", profile.host.record_ns},         {"wait_ns", profile.host.wait_ns},
                  {"host_wait_ns", profile.host.host_wait_ns},   {"step_ns", profile.host.step_ns},
                  {"trace_ns", profile.host.trace_ns},           {"graph_ns", profile.host.graph_ns}};
  json["device"] = {{"name", profile.device.name},
                    {"multiprocessors", profile.device.multiprocessors},
                    {"launch_latency_ns", profile.device.launch_latency_ns},
                    {"stream_gap_ns", profile.device.stream_gap_ns},
                    {"event_latency_ns", profile.device.event_latency_ns},
                    {"memory_bytes_per_ns", profile.device.memory_bytes_per_ns},
                    {"trace_ns", profile.device.trace_ns},
                    {"graph_gap_ns", profile.device.graph_gap_ns}};
  if (profile.device.graph_collective_gap_ns >= 0) json["device"]["graph_collective_gap_ns"] = profile.device.graph_collective_gap_ns;
  if (profile.device.graph_event_latency_ns >= 0) json["device"]["graph_event_latency_ns"] = profile.device.graph_event_latency_ns;
  json["contention"] = contention_to_json(profile.contention);
  if (profile.power != PowerCosts{}) {
    json["power"] = {{"exponent", profile.power.exponent},
                     {"idle", profile.power.idle},
                     {"communication", profile.power.communication},
                     {"memory", profile.power.memory},
                     {"fastest", profile.power.fastest}};
    if (profile.power.train > 0) json["power"]["train"] = profile.power.train;
    if (profile.power.multiplying > 0) json["power"]["multiplying"] = profile.power.multiplying;
    if (profile.power.moving > 0) json["power"]["moving"] = profile.power.moving;
  }
  json["network"] = {{"ranks_per_node", profile.network.ranks_per_node},
                     {"bytes_per_ns", profile.network.bytes_per_ns},
                     {"latency_ns", profile.network.latency_ns}};
  json["gemm"] = Json::object();
  for (const auto& [dtype, table] : profile.gemm) {
    Json points = Json::array();
    for (const GemmPoint& point : table.points) {
      Json row = {point.size.m, point.size.n, point.size.k, point.size.batch, point.ns};
      if (point.beside_ns > 0) row.push_back(point.beside_ns);
      points.push_back(std::move(row));
    }
    json["gemm"][base::name_of(dtype)] = {
        {"peak_flops_per_ns", table.peak_flops_per_ns}, {"fixed_ns", table.fixed_ns}, {"points", points}};
  }
  json["kernels"] = Json::object();
  for (const auto& [name, curve] : profile.kernels) json["kernels"][name] = curve_to_json(curve);
  json["collectives"] = Json::object();
  for (const auto& [kind, by_ranks] : profile.collectives) json["collectives"][program::name_of(kind)] = curves_to_json(by_ranks);
  if (!profile.windows.collectives.empty()) {
    Json& windows = json["windows"];
    for (const auto& [kind, by_ranks] : profile.windows.collectives) windows["collectives"][program::name_of(kind)] = curves_to_json(by_ranks);
    if (!profile.windows.contention.empty()) windows["contention"] = contention_to_json(profile.windows.contention);
    for (const auto& [matmul, kinds] : profile.windows.fit) {
      for (program::OpKind kind : kinds) windows["fit"][matmul].push_back(program::name_of(kind));
    }
  }
  std::string out;
  print(json, "", out);
  return out + "\n";
}

base::Result<Profile> profile_from_json(std::string_view text, const std::string& source) {
  try {
    const Json json = base::parse_ordered_json(text);
    Profile profile;
    Fields fields(json, "");
    profile.name = fields.text("name");
    profile.made_at = fields.text("made_at");
    const Json& origin = fields.any("origin");
    if (!origin.is_array()) throw Malformed{"key origin is no list of sentences"};
    for (const Json& sentence : origin) {
      if (!sentence.is_string()) throw Malformed{"key origin is no list of sentences"};
      profile.origin.push_back(sentence.get<std::string>());
    }
    profile.step_error = fields.number("step_error", -1);
    read_host(profile.host, fields.any("host"));
    read_device(profile.device, fields.any("device"));
    read_contention(profile.contention, fields.any("contention"), "contention");
    if (json.contains("power")) read_power(profile.power, fields.any("power"));
    Fields network(fields.any("network"), "network");
    profile.network.ranks_per_node = network.whole("ranks_per_node", 1);
    profile.network.bytes_per_ns = network.number("bytes_per_ns", 1e-9);
    profile.network.latency_ns = network.number("latency_ns", 0);
    network.nothing_else();
    read_tables(profile, fields);
    if (json.contains("windows")) read_windows(profile.windows, fields.any("windows"));
    fields.nothing_else();
    return profile;
  } catch (const Malformed& malformed) {
    return base::Error{base::text(source, " is no machine profile: ", malformed.what)};
  } catch (const nlohmann::json::exception& error) {
    return base::Error{base::text(source, " is no machine profile: ", error.what())};
  }
}

}  // namespace shardbook::simulate
