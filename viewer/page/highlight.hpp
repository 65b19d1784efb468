// page/highlight: which words of a program are what?
//
// One pass over the text, no grammar: enough for C++, CUDA, Python, shell and JSON to be read more easily.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace shardbook::page {

enum class TokenKind { plain, keyword, type, string, number, comment, preprocessor };

struct Token {
  std::size_t begin = 0, end = 0;   // bytes
  TokenKind kind = TokenKind::plain;
};

// Tokens that cover the text without gap or overlap, in order. `language` is a fence's word or a file's extension
// (cpp, cuda, c, python, sh, json ...); another one gives a single plain token. An empty text gives none.
std::vector<Token> highlight(std::string_view text, std::string_view language);

// "engine/fsdp/schedule.cpp" -> "cpp"; "" if there is no extension.
std::string_view extension_of(std::string_view path);

}  // namespace shardbook::page
