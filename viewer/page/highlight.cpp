// page/highlight: see highlight.hpp.
#include "viewer/page/highlight.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace shardbook::page {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool in_word(char c) { return begins_word(c) || is_digit(c); }

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 65> cpp_keywords{
    "alignas", "asm", "break", "case", "catch", "class", "co_await", "co_return", "co_yield", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "dynamic_cast", "else", "enum", "explicit", "export",
    "extern", "false", "final", "for", "friend", "goto", "if", "inline", "mutable", "namespace", "new", "noexcept", "nullptr", "operator",
    "override", "private", "protected", "public", "reinterpret_cast", "requires", "return", "sizeof", "static", "static_assert",
    "static_cast", "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typeid", "typename", "union", "using",
    "virtual", "volatile", "while"};
constexpr std::array<std::string_view, 12> cuda_keywords{"__global__", "__device__", "__host__", "__shared__", "__constant__", "__restrict__",
                                                         "__launch_bounds__", "__managed__", "__forceinline__", "threadIdx", "blockIdx", "blockDim"};
constexpr std::array<std::string_view, 40> cpp_types{
    "auto", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void", "wchar_t", "size_t", "int8_t", "int16_t",
    "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "std", "string", "string_view", "vector", "array", "map", "optional",
    "pair", "span", "function", "unique_ptr", "shared_ptr", "dim3", "half", "__nv_bfloat16", "float2", "float4", "cudaStream_t", "cudaEvent_t"};
constexpr std::array<std::string_view, 35> python_keywords{
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
    "while", "with", "yield"};
constexpr std::array<std::string_view, 14> python_types{"int", "float", "str", "bool", "list", "dict", "tuple", "set", "bytes", "object", "self", "cls",
                                                        "range", "type"};
constexpr std::array<std::string_view, 20> shell_keywords{"if", "then", "else", "elif", "fi", "for", "in", "do", "done", "while", "case", "esac", "function",
                                                          "return", "export", "local", "set", "cd", "exit", "source"};
constexpr std::array<std::string_view, 3> json_keywords{"true", "false", "null"};

enum class Language { none, cpp, python, shell, json };

Language language_of(std::string_view name) {
  std::string lower(name.substr(0, 16));
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 11> cpp{"cpp", "c++", "cc", "cxx", "c", "h", "hpp", "cuda", "cu", "cuh", "hxx"};
  constexpr std::array<std::string_view, 3> python{"python", "py", "python3"};
  constexpr std::array<std::string_view, 5> shell{"sh", "bash", "shell", "zsh", "console"};
  if (holds(cpp, lower)) return Language::cpp;
  if (holds(python, lower)) return Language::python;
  if (holds(shell, lower)) return Language::shell;
  return lower == "json" || lower == "jsonl" ? Language::json : Language::none;
}

class Painter {
 public:
  Painter(std::string_view text, Language language) : text_(text), language_(language) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const std::size_t before = at_;
      const TokenKind kind = one();
      if (at_ <= before) at_ = before + 1;
      add(before, at_, kind);
    }
    return std::move(tokens_);
  }

 private:
  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  bool here(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }
  void to_line_end() { at_ = std::min(text_.find('\n', at_), text_.size()); }
  // Neighbours of one kind become one token.
  void add(std::size_t begin, std::size_t end, TokenKind kind) {
    if (!tokens_.empty() && tokens_.back().kind == kind) {
      tokens_.back().end = end;
    } else {
      tokens_.push_back({begin, end, kind});
    }
  }

  TokenKind one();
  TokenKind comment_or_directive(bool& found);
  TokenKind quoted();
  TokenKind number();
  TokenKind word();

  std::string_view text_;
  Language language_;
  std::size_t at_ = 0;
  bool line_is_blank_ = true;       // nothing but blanks so far
  std::vector<Token> tokens_;
};

TokenKind Painter::comment_or_directive(bool& found) {
  found = true;
  if (language_ == Language::cpp) {
    if (here("//")) return to_line_end(), TokenKind::comment;
    if (here("/*")) {
      const std::size_t end = text_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
      return TokenKind::comment;
    }
    if (at(at_) == '#' && line_is_blank_) {
      // The directive's word; for an include its file too.
      std::size_t end = at_ + 1;
      while (at(end) == ' ' || at(end) == '\t') ++end;
      while (in_word(at(end))) ++end;
      at_ = end;
      return TokenKind::preprocessor;
    }
  } else if (at(at_) == '#' && (language_ == Language::python || (language_ == Language::shell && (at_ == 0 || std::isspace(static_cast<unsigned char>(text_[at_ - 1])) != 0)))) {
    return to_line_end(), TokenKind::comment;
  } else if (language_ == Language::python && at(at_) == '@' && line_is_blank_) {
    ++at_;
    while (in_word(at(at_)) || at(at_) == '.') ++at_;
    return TokenKind::preprocessor;
  }
  found = false;
  return TokenKind::plain;
}

TokenKind Painter::quoted() {
  const char quote = text_[at_];
  if (language_ == Language::python && text_.compare(at_, 3, std::string(3, quote)) == 0) {
    const std::size_t end = text_.find(std::string(3, quote), at_ + 3);
    at_ = end == std::string_view::npos ? text_.size() : end + 3;
    return TokenKind::string;
  }
  ++at_;
  const bool over_lines = language_ == Language::shell;
  const bool escapes = !(language_ == Language::shell && quote == '\'');
  while (at_ < text_.size() && text_[at_] != quote && (over_lines || text_[at_] != '\n')) {
    if (text_[at_] == '\\' && escapes && at_ + 1 < text_.size()) ++at_;
    ++at_;
  }
  if (at(at_) == quote) ++at_;
  at_ = std::min(at_, text_.size());
  return TokenKind::string;
}

TokenKind Painter::number() {
  while (in_word(at(at_)) || at(at_) == '.' || (at(at_) == '\'' && in_word(at(at_ + 1))) ||
         ((at(at_) == '+' || at(at_) == '-') && (at(at_ - 1) == 'e' || at(at_ - 1) == 'E'))) {
    ++at_;
  }
  return TokenKind::number;
}

TokenKind Painter::word() {
  const std::size_t begin = at_;
  while (in_word(at(at_))) ++at_;
  const std::string_view found = text_.substr(begin, at_ - begin);
  switch (language_) {
    case Language::cpp:
      if (found == "R" && at(at_) == '"') {
        // A raw string: R"name( ... )name".
        const std::size_t open = text_.find('(', at_);
        if (open != std::string_view::npos && open - at_ <= 17) {
          const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
          const std::size_t end = text_.find(close, open);
          at_ = end == std::string_view::npos ? text_.size() : end + close.size();
          return TokenKind::string;
        }
      }
      if (holds(cpp_keywords, found) || holds(cuda_keywords, found)) return TokenKind::keyword;
      // Types of the house begin with a capital and have a small letter.
      if (holds(cpp_types, found) || (std::isupper(static_cast<unsigned char>(found[0])) != 0 && std::any_of(found.begin(), found.end(), [](unsigned char c) { return std::islower(c) != 0; }))) {
        return TokenKind::type;
      }
      return TokenKind::plain;
    case Language::python: return holds(python_keywords, found) ? TokenKind::keyword : holds(python_types, found) ? TokenKind::type : TokenKind::plain;
    case Language::shell: return holds(shell_keywords, found) ? TokenKind::keyword : TokenKind::plain;
    case Language::json: return holds(json_keywords, found) ? TokenKind::keyword : TokenKind::plain;
    case Language::none: break;
  }
  return TokenKind::plain;
}

TokenKind Painter::one() {
  const char c = text_[at_];
  if (c == '\n') {
    line_is_blank_ = true;
    ++at_;
    return TokenKind::plain;
  }
  if (c == ' ' || c == '\t') {
    ++at_;
    return TokenKind::plain;
  }
  bool found = false;
  const TokenKind kind = comment_or_directive(found);
  line_is_blank_ = false;
  if (found) return kind;
  if (c == '"' || (c == '\'' && language_ != Language::json)) return quoted();
  if (is_digit(c) || (c == '.' && is_digit(at(at_ + 1)))) return number();
  if (begins_word(c)) return word();
  ++at_;
  return TokenKind::plain;
}

}  // namespace

std::vector<Token> highlight(std::string_view text, std::string_view language) {
  if (text.empty()) return {};
  const Language which = language_of(language);
  if (which == Language::none) return {{0, text.size(), TokenKind::plain}};
  return Painter(text, which).run();
}

std::string_view extension_of(std::string_view path) {
  const std::size_t point = path.rfind('.');
  const std::size_t slash = path.rfind('/');
  if (point == std::string_view::npos || (slash != std::string_view::npos && point < slash)) return {};
  return path.substr(point + 1);
}

}  // namespace shardbook::page
