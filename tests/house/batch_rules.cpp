// Rules for files that are compiled in batches, several as one (CMAKE_UNITY_BUILD), as they are where tests are built, and for few processors.
//
// Includes: in a batch a file sees what the one before it included; who builds file by file would be the first to miss it.
// By words, not by a compiler: a name of the standard library or of the system that is known here must have its header, and
// a name that is declared in headers of engine/ and viewer/ one of those, in the file or in what it includes. It does not find
// every one: a function of its own room whose name is one word passes, and so do names that are not in the table.
//
// Usings: of what one file of a room says `using`, another that names it so must say, too.
//
// Names: what two files of a room keep for themselves, in a nameless namespace, has two names. Which files share a batch is
// then nobody's business.
#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>

#include "engine/base/check.hpp"
#include "tests/house/note_rules.hpp"

namespace shardbook::tests {

using base::text;

namespace {

// Names, as they are written, and the headers of which one declares them. Where libstdc++ of all versions brings a name with
// another header, that one stands here, too.
struct Known {
  const char* names;
  const char* headers;
};
constexpr Known known[] = {
    {"std::string std::to_string std::stoi std::stoll std::stod std::getline", "string sstream filesystem fstream iostream regex iomanip"},
    {"std::string_view", "string_view string sstream filesystem fstream iostream regex charconv"},
    {"std::vector", "vector regex"},
    {"std::map std::multimap", "map regex"},
    {"std::set std::multiset", "set"},
    {"std::unordered_map", "unordered_map"},
    {"std::unordered_set", "unordered_set"},
    {"std::optional std::nullopt", "optional"},
    {"std::variant std::visit std::holds_alternative std::get_if std::monostate", "variant"},
    {"std::function std::bind std::reference_wrapper std::ref std::cref", "functional"},
    {"std::unique_ptr std::make_unique std::shared_ptr std::make_shared std::weak_ptr", "memory"},
    {"std::filesystem", "filesystem"},
    {"std::ifstream std::ofstream std::fstream", "fstream"},
    {"std::ostringstream std::istringstream std::stringstream", "sstream"},
    {"std::cout std::cerr std::cin", "iostream"},
    {"std::array", "array"},
    {"std::deque", "deque queue"},
    {"std::queue std::priority_queue", "queue"},
    {"std::list", "list"},
    {"std::thread std::this_thread", "thread"},
    {"std::mutex std::lock_guard std::scoped_lock std::once_flag std::call_once", "mutex"},
    {"std::unique_lock", "mutex shared_mutex"},
    {"std::condition_variable", "condition_variable"},
    {"std::atomic std::atomic_ref std::memory_order_relaxed std::memory_order_acquire std::memory_order_release", "atomic"},
    {"std::chrono", "chrono thread condition_variable"},
    {"std::sort std::stable_sort std::find_if std::any_of std::all_of std::none_of std::count_if std::max_element std::min_element "
     "std::find std::minmax std::transform std::copy_n std::lower_bound std::upper_bound std::unique std::reverse std::clamp std::nth_element "
     "std::binary_search std::is_sorted std::minmax_element std::rotate", "algorithm functional regex ranges"},
    {"std::accumulate std::iota std::gcd std::lcm std::partial_sum", "numeric"},
    {"std::sqrt std::exp std::log std::log2 std::log10 std::pow std::fabs std::floor std::ceil std::round std::lround std::llround "
     "std::isnan std::isfinite std::tanh std::erf std::cos std::sin std::fmod std::nextafter std::ldexp std::lrint", "cmath random"},
    {"std::numeric_limits", "limits random"},
    {"std::memcpy std::memset std::memcmp std::strlen std::strerror std::strcmp std::strncmp std::memmove std::strchr std::strstr", "cstring"},
    {"std::printf std::fprintf std::snprintf std::fopen std::fclose std::fread std::fwrite std::fflush std::rename std::fputs std::FILE "
     "std::perror std::fseek std::ftell", "cstdio"},
    {"std::getenv std::strtol std::strtoll std::strtod std::strtoul std::exit std::abort std::atoi std::malloc std::free std::llabs", "cstdlib"},
    {"std::from_chars std::to_chars", "charconv"},
    {"std::regex std::smatch std::cmatch std::regex_match std::regex_search std::regex_replace", "regex"},
    {"std::mt19937 std::mt19937_64 std::random_device std::normal_distribution", "random"},
    {"std::exchange", "utility atomic"},
    {"std::int64_t std::uint64_t std::int32_t std::uint32_t std::int16_t std::uint16_t std::int8_t std::uint8_t", "cstdint"},
    {"std::byte std::size_t std::ptrdiff_t", "cstddef string vector array string_view memory cstring cstdio cstdlib functional"},
    {"std::abs", "cmath cstdlib"},
    {"std::fill std::copy std::count std::max_element", "algorithm functional regex ranges"},
    {"std::tie std::tuple", "tuple map memory functional"},
    {"std::ostream std::istream", "ostream iosfwd istream iostream sstream fstream iomanip string filesystem"},
    {"std::span", "span"},
    {"std::bit_cast std::popcount std::countr_zero std::countl_zero std::has_single_bit std::bit_ceil std::endian std::bit_width", "bit"},
    {"std::signal std::raise", "csignal signal.h"},
    {"std::runtime_error std::logic_error std::invalid_argument std::out_of_range", "stdexcept string"},
    {"std::setw std::setprecision std::setfill", "iomanip"},
    {"std::isdigit std::isalpha std::isspace std::isalnum std::tolower std::toupper std::isxdigit std::isprint", "cctype"},
    {"std::future std::promise", "future"},
    {"errno", "cerrno errno.h"},
    {"pollfd", "poll.h"},
    {"dlopen dlsym dlerror", "dlfcn.h"},
    {"mkdir fstat", "sys/stat.h"},
    {"waitpid", "sys/wait.h"},
    {"mmap munmap", "sys/mman.h"},
    {"flock", "sys/file.h"},
    {"nlohmann", "nlohmann/json.hpp nlohmann/json_fwd.hpp"},
    {"ImGui ImDrawList ImVec2 ImU32 ImGuiIO", "imgui.h imgui_internal.h"},
};

std::vector<std::string> split(const std::string& words) {
  std::istringstream in(words);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

const std::map<std::string, std::vector<std::string>>& headers_of_known() {
  static const auto all = [] {
    std::map<std::string, std::vector<std::string>> out;
    for (const Known& row : known) {
      for (const std::string& name : split(row.names)) out[name] = split(row.headers);
    }
    return out;
  }();
  return all;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The source with blanks for comments, literals and includes; lines stay lines.
std::string code_of(const std::string& source) {
  std::string code = source;
  auto blank = [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < std::min(end, code.size()); ++at) {
      if (code[at] != '\n') code[at] = ' ';
    }
    return end;
  };
  auto after = [&](std::string_view end, std::size_t from) {
    const std::size_t found = source.find(end, from);
    return found == std::string::npos ? source.size() : found + end.size();
  };
  for (std::size_t at = 0; at < code.size();) {
    if (source.compare(at, 2, "//") == 0 || source.compare(at, 8, "#include") == 0) {
      at = blank(at, std::min(source.find('\n', at), source.size()));
    } else if (source.compare(at, 2, "/*") == 0) {
      at = blank(at, after("*/", at + 2));
    } else if (source.compare(at, 2, "R\"") == 0 && (at == 0 || !in_word(source[at - 1]))) {
      const std::size_t open = source.find('(', at);
      at = blank(at, after(")" + source.substr(at + 2, open - at - 2) + "\"", open));
    } else if (source[at] == '"' || (source[at] == '\'' && (at == 0 || !in_word(source[at - 1])))) {
      std::size_t end = at + 1;
      while (end < source.size() && source[end] != source[at] && source[end] != '\n') end += source[end] == '\\' ? 2 : 1;
      at = blank(at, end + 1);
    } else {
      ++at;
    }
  }
  return code;
}

// A name where it is written, `std::sort(`; not a member's, `lane.device`.
struct Written {
  std::string space;      // "std", "config"; empty where there is none
  std::string name;
  bool called = false;    // "(" follows
};

std::vector<Written> names_in(const std::string& code) {
  std::vector<Written> names;
  std::string space;
  for (std::size_t at = 0; at < code.size();) {
    if (!in_word(code[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < code.size() && in_word(code[at])) ++at;
    std::string word = code.substr(begin, at - begin);
    const bool qualifies = code.compare(at, 2, "::") == 0;
    const bool of_object = begin > 0 && (code[begin - 1] == '.' || (begin > 1 && code.compare(begin - 2, 2, "->") == 0));
    if (std::isdigit(static_cast<unsigned char>(word[0])) == 0 && !of_object) {
      names.push_back({space, word, code[at] == '('});
    }
    space = qualifies ? word : "";
    if (qualifies) at += 2;
  }
  return names;
}

// What headers of the project declare for others: by the last part of the namespace and the name.
using Headers = std::vector<std::string>;
using Declared = std::map<std::pair<std::string, std::string>, Headers>;

struct Source {
  std::string code;
  std::vector<std::string> includes;
  std::vector<std::string> spaces;   // of the namespace: "kernels", "host"
};

bool is_header(const std::string& path) { return path.ends_with(".hpp") || path.ends_with(".cuh"); }
bool is_source(const std::string& path) { return is_header(path) || path.ends_with(".cpp") || path.ends_with(".cu"); }

class Includes {
 public:
  explicit Includes(const Tree& tree) {
    static const std::regex include(R"re(^\s*#\s*include\s+["<]([^">]+)[">])re");
    for (const auto& [path, content] : tree.texts) {
      if (!is_source(path) || !(path.starts_with("engine/") || path.starts_with("viewer/"))) continue;
      Source& source = sources_[path];
      source.code = code_of(content);
      std::istringstream lines(content);
      std::smatch match;
      for (std::string line; std::getline(lines, line);) {
        if (line.find("include") != std::string::npos && std::regex_search(line, match, include)) source.includes.push_back(match[1]);
      }
    }
    for (auto& [path, source] : sources_) declare(path, source);
  }

  Problems missing() const {
    Problems problems;
    for (const auto& [path, source] : sources_) {
      const std::set<std::string> seen = seen_by(path);
      std::set<std::string> said;
      const std::vector<Written> names = names_in(source.code);
      for (const Written& written : names) {
        const std::string whole = written.space.empty() ? written.name : written.space + "::" + written.name;
        const Headers headers = declaring(path, written, names, seen);
        if (headers.empty() || std::any_of(headers.begin(), headers.end(), [&](const std::string& header) { return seen.contains(header); })) continue;
        if (said.insert(whole).second) problems.push_back(text(path, " names ", whole, " and does not include ", headers.front()));
      }
    }
    return problems;
  }

  // What one file of a room says `using` of, another one that calls it so must say, too, or a header that it includes.
  Problems without_using() const {
    static const std::regex made_known(R"((?:^|\n)using [\w:]+::(\w+);)");
    std::map<std::string, std::map<std::string, std::set<std::string>>> makers;   // by room and name: who makes it known
    for (const auto& [path, source] : sources_) {
      for (std::sregex_iterator at(source.code.begin(), source.code.end(), made_known), end; at != end; ++at) makers[room_of(path)][(*at)[1]].insert(path);
    }
    Problems problems;
    for (const auto& [path, source] : sources_) {
      const auto room = makers.find(room_of(path));
      if (room == makers.end() || is_header(path)) continue;
      const std::set<std::string> seen = seen_by(path);
      const std::vector<Written> names = names_in(source.code);
      for (const auto& [name, files] : room->second) {
        const auto is_this = [&](const Written& written) { return written.space.empty() && written.name == name; };
        const bool is_type = std::isupper(static_cast<unsigned char>(name[0])) != 0;
        // A word in small letters may be a variable's, so only where all of them are calls
        const bool is_named = std::any_of(names.begin(), names.end(), is_this);
        const bool all_called = std::all_of(names.begin(), names.end(), [&](const Written& written) { return !is_this(written) || written.called; });
        if (!is_named || !(is_type || all_called)) continue;
        const bool is_known = std::any_of(seen.begin(), seen.end(), [&](const std::string& file) {
          const auto one = sources_.find(file);
          if (files.contains(file)) return true;
          if (one == sources_.end() || !share_a_space(source, one->second)) return false;
          // A header of the room may take in all of another
          return is_its_own(one->second, name, is_type) || one->second.code.find("using namespace") != std::string::npos;
        });
        const bool is_of_room = std::any_of(source.spaces.begin(), source.spaces.end(), [&](const std::string& space) { return !declared_in(space, name).empty(); });
        if (!is_known && !is_of_room) problems.push_back(text(path, " names ", name, " without the using that ", *files.begin(), " has for it"));
      }
    }
    return problems;
  }

 private:
  void declare(const std::string& path, Source& source) {
    static const std::regex space(R"(^namespace ([\w:]+) \{)");
    static const std::regex type(R"(^(?:template <.*>\s*)?(?:class|struct|enum class|union) (?:alignas\([^)]*\) )?([A-Z]\w*)(?: final)?\s*(?::[^;{]*)?(\{|;))");
    static const std::regex alias(R"(^using ([A-Z]\w*) =)"), constant(R"(^(?:inline )?constexpr [\w:<>, ]+ (\w+)(?: =|\{|\[))"), macro(R"(^#define ([A-Z]\w+))");
    static const std::regex function(R"(^(?!return|using|#|namespace|else|template|constexpr)[\w:<>,&*\[\] ]+[ &*>]([a-z]\w*)\()");
    std::istringstream lines(source.code);
    std::string last;
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] == ' ' || line[0] == '}' || line[0] == ')') continue;
      if (std::regex_search(line, match, space)) {
        const std::string whole = match[1];
        last.clear();
        for (const std::string& part : split(std::regex_replace(whole, std::regex("::"), " "))) {
          if (part == "shardbook") continue;
          if (source.spaces.empty() || source.spaces.back() != part) source.spaces.push_back(part);
          last = part;
        }
      } else if (std::regex_search(line, match, type)) {
        // Where it is declared only, a pointer to it may be enough
        if (is_header(path) || match[2] == ";") declared_[{last, match[1]}].push_back(path);
      } else if (is_header(path)) {
        if (std::regex_search(line, match, macro)) declared_[{"", match[1]}].push_back(path);
        for (const std::regex* one : {&alias, &constant, &function}) {
          if (std::regex_search(line, match, *one)) declared_[{last, match[1]}].push_back(path);
        }
      }
    }
  }

  // The headers of which one must be included for this name; none where none has to be.
  Headers declaring(const std::string& path, const Written& written, const std::vector<Written>& names, const std::set<std::string>& seen) const {
    const auto& known_names = headers_of_known();
    const auto one = known_names.find(written.space == "std" ? "std::" + written.name : written.space.empty() ? written.name : "");
    if (one != known_names.end()) return one->second;
    const bool is_type = std::isupper(static_cast<unsigned char>(written.name[0])) != 0;
    if (!written.space.empty()) return declared_in(written.space, written.name);
    if (Headers macro = declared_in("", written.name); is_type && !macro.empty()) return macro;
    // Of its own room. A word in small letters may be anything's: only one of two words that is called wherever it stands.
    // (In a header it may depend on a template's parameter.)
    const bool is_call = written.name.find('_') != std::string::npos && !is_header(path) &&
                         std::all_of(names.begin(), names.end(), [&](const Written& other) { return other.name != written.name || other.called; });
    Headers headers;
    for (const std::string& space : sources_.at(path).spaces) {
      const Headers more = declared_in(space, written.name);
      headers.insert(headers.end(), more.begin(), more.end());
    }
    if (headers.empty() || !(is_type || is_call)) return {};
    const bool has_a_meaning = std::any_of(seen.begin(), seen.end(), [&](const std::string& file) {
      return sources_.contains(file) && is_its_own(sources_.at(file), written.name, is_type);
    });
    if (has_a_meaning) return {};
    // A function's arguments may lead to another room's
    for (const auto& [place, more] : declared_) {
      if (!is_type && place.second == written.name) headers.insert(headers.end(), more.begin(), more.end());
    }
    return headers;
  }

  Headers declared_in(const std::string& space, const std::string& name) const {
    const auto found = declared_.find({space, name});
    return found == declared_.end() ? Headers{} : found->second;
  }

  // Whether a file gives the name a meaning of its own: a type in a type, a parameter of a template, a function.
  static bool is_its_own(const Source& source, const std::string& name, bool is_type) {
    for (std::size_t at = source.code.find(name); at != std::string::npos; at = source.code.find(name, at + 1)) {
      if ((at > 0 && in_word(source.code[at - 1])) || in_word(source.code[at + name.size()])) continue;
      const std::size_t line = source.code.rfind('\n', at) + 1;
      const std::string before = source.code.substr(line, at - line);
      if (is_type) {
        for (const char* word : {"class ", "struct ", "typename ", "using ", "concept ", "::"}) {
          if (before.ends_with(word)) return true;
        }
      } else {
        // A declaration: a type, and nothing else, before it
        const std::size_t type = before.find_last_not_of(" *&");
        const bool is_typed = type != std::string::npos && type + 1 < before.size();
        if (is_typed && before.find("return") == std::string::npos && before.find_first_of("=(,?{}") == std::string::npos) return true;
      }
    }
    return false;
  }

  static bool share_a_space(const Source& a, const Source& b) {
    return std::any_of(a.spaces.begin(), a.spaces.end(), [&](const std::string& space) { return std::find(b.spaces.begin(), b.spaces.end(), space) != b.spaces.end(); });
  }

  // All that a file sees: what it includes, and what that includes.
  std::set<std::string> seen_by(const std::string& path) const {
    std::set<std::string> seen;
    std::vector<std::string> open{path};
    while (!open.empty()) {
      const std::string at = open.back();
      open.pop_back();
      const auto found = sources_.find(at);
      if (!seen.insert(at).second || found == sources_.end()) continue;
      open.insert(open.end(), found->second.includes.begin(), found->second.includes.end());
    }
    return seen;
  }

  std::map<std::string, Source> sources_;
  Declared declared_;
};

}  // namespace

Problems missing_includes(const Tree& tree) { return Includes(tree).missing(); }

Problems names_without_using(const Tree& tree) { return Includes(tree).without_using(); }

Problems names_given_twice(const Tree& tree) {
  static const std::regex space(R"(^namespace ([\w:]+) \{)"), type(R"(^(?:class|struct|enum class|union|using) ([A-Z]\w*)\b[^;]*(?:\{|=))");
  static const std::regex constant(R"(^(?:inline |static )*(?:constexpr|const) [\w:<>, *]+ (\w+)(?: =|\{|\[))");
  static const std::regex function(R"(^(?!return|using|#|namespace|else|template|constexpr)[\w:<>,&*\[\] ]+[ &*>](\w+)\(([^)]*))"), parameter_name(R"(([\w>&*]) +\w+ *(?:=[^,]*)?(,|$))");
  Problems problems;
  std::map<std::string, std::pair<std::string, std::string>> first;   // where a room's name is, and its line
  for (const auto& [path, content] : tree.texts) {
    if (!path.ends_with(".cpp") || !(path.starts_with("engine/") || path.starts_with("viewer/"))) continue;
    std::istringstream lines(content), code(code_of(content));
    std::string inside;
    bool own = false;
    std::smatch match;
    for (std::string line, plain; std::getline(lines, line) && std::getline(code, plain);) {
      if (line == "namespace {") own = true;
      else if (line == "}  // namespace") own = false;
      else if (std::regex_search(plain, match, space)) inside = match[1];
      if (!own || plain.empty() || plain[0] == ' ' || plain[0] == '}') continue;
      std::string name;
      if (std::regex_search(plain, match, type) || std::regex_search(plain, match, constant)) name = match[1];
      else if (std::regex_search(plain, match, function)) name = match[1].str() + "(" + std::regex_replace(match[2].str(), parameter_name, "$1$2") + ")";
      if (name.empty()) continue;
      const auto [at, is_new] = first.emplace(room_of(path) + " " + inside + "::" + name, std::pair{path, plain});
      const auto& [other, its_line] = at->second;
      // One more name of a type may be given again
      if (is_new || other == path || (plain.starts_with("using ") && plain == its_line)) continue;
      problems.push_back(text(path, ": ", name, " is a name in ", other, ", too"));
    }
  }
  return problems;
}

}  // namespace shardbook::tests
