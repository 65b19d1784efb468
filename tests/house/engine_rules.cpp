// Rules on what pages say of the engine: spans, commands, tests.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "engine/base/check.hpp"
#include "tests/house/markdown.hpp"
#include "tests/house/note_rules.hpp"

namespace shardbook::tests {

using base::text;

namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().generic_string(); }

// The file that a link of a page means, from the root.
std::string meant_by(const std::string& page, const Link& link) {
  return (std::filesystem::path(folder_of(page)) / link.target.substr(0, link.target.find('#'))).lexically_normal().generic_string();
}

}  // namespace

std::map<std::string, std::string> find_spans(const Tree& tree, Problems& problems) {
  static const std::regex begin(R"(^\s*//@ ([a-z_0-9.]+): (\S.*)$)"), end(R"(^\s*//@end\s*$)"), mark(R"(^\s*//@)");
  std::map<std::string, std::string> files;
  for (const auto& [path, content] : tree.texts) {
    if (!path.starts_with("engine/")) continue;
    std::vector<std::string> open;
    int number = 0;
    for (const std::string& line : lines_of(content)) {
      ++number;
      std::smatch match;
      if (std::regex_match(line, match, begin)) {
        const std::string name = match[1];
        if (files.contains(name)) problems.push_back(text(path, ":", number, ": span ", name, " is also in ", files[name]));
        if (name.substr(0, name.find('.')) != room_of(path) || name.find('.') == std::string::npos) {
          problems.push_back(text(path, ":", number, ": span ", name, " must be named after its room"));
        }
        files[name] = path;
        open.push_back(name);
      } else if (std::regex_match(line, end)) {
        if (open.empty()) problems.push_back(text(path, ":", number, ": no span is open here"));
        else open.pop_back();
      } else if (std::regex_search(line, mark)) {
        problems.push_back(text(path, ":", number, ": neither `//@ room.topic: Title.` nor `//@end`"));
      }
    }
    for (const std::string& name : open) problems.push_back(text(path, ": span ", name, " is not closed"));
  }
  return files;
}

Problems broken_spans(const Tree& tree) {
  Problems problems;
  const std::map<std::string, std::string> files = find_spans(tree, problems);
  for (const std::string& page : tree.pages()) {
    const Markdown markdown = parse_markdown(tree.texts.at(page));
    for (const Fence& fence : markdown.fences) {
      if (fence.info != "span") continue;
      const std::string where = text(page, ":", fence.line, ": ");
      if (fence.content.size() != 1 || !files.contains(fence.content[0])) {
        problems.push_back(text(where, "the engine has no span ", fence.content.empty() ? "of no name" : fence.content[0]));
        continue;
      }
      const std::string& file = files.at(fence.content[0]);
      const bool linked = std::any_of(markdown.links.begin(), markdown.links.end(), [&](const Link& link) {
        return link.line < fence.line && meant_by(page, link) == file;
      });
      if (!linked) problems.push_back(text(where, "no link to ", file, " stands before the span ", fence.content[0]));
    }
  }
  return problems;
}

namespace {

// All that stands behind ./shardbook in a page: in blocks of commands, and in prose between backticks.
std::vector<std::string> commands_of(const Markdown& markdown) {
  static const std::regex inline_code(R"(`([^`]*\./shardbook [^`]*)`)");
  std::vector<std::string> lines;
  for (const Fence& fence : markdown.fences) {
    if (fence.info == "sh") lines.insert(lines.end(), fence.content.begin(), fence.content.end());
  }
  for (const std::string& line : markdown.prose) {
    for (std::sregex_iterator at(line.begin(), line.end(), inline_code), end; at != end; ++at) lines.push_back((*at)[1]);
  }
  std::vector<std::string> commands;
  for (const std::string& line : lines) {
    const std::size_t begin = line.find("./shardbook ");
    if (begin == std::string::npos) continue;
    const std::string rest = line.substr(begin + 12);
    commands.push_back(rest.substr(0, std::min(rest.find(" #"), rest.find(" |"))));
  }
  return commands;
}

// Does some text between double quotes in the command line's sources equal the word?
bool cli_says(const Tree& tree, const std::string& word) {
  const auto says = [&](const auto& entry) {
    return entry.first.starts_with("engine/cli/") && entry.second.find("\"" + word + "\"") != std::string::npos;
  };
  return std::any_of(tree.texts.begin(), tree.texts.end(), says);
}

bool lab_or_note_exists(const Tree& tree, const std::string& command, const std::string& name) {
  const std::string below = command == "run" ? "labs/" : "notes/";
  return std::any_of(tree.paths.begin(), tree.paths.end(), [&](const std::string& path) {
    return path == name || path == below + name || path == below + name + ".md" || path == below + "rooms/" + name + ".md" ||
           path.starts_with(below + name + "_");
  });
}

// "04a": a chapter of that lab's text.
bool part_exists(const Tree& tree, const std::string& name) {
  const auto has_it = [&](const auto& entry) {
    return name.size() == 3 && entry.first.starts_with("labs/" + name.substr(0, 2) + "_") && entry.second.find("\n## " + name + " ") != std::string::npos;
  };
  return std::any_of(tree.texts.begin(), tree.texts.end(), has_it);
}

}  // namespace

Problems unknown_commands(const Tree& tree) {
  Problems problems;
  for (const std::string& page : tree.pages()) {
    for (const std::string& command : commands_of(parse_markdown(tree.texts.at(page)))) {
      const std::vector<std::string> words = words_of(command);
      if (words.empty() || words[0].starts_with("--")) continue;
      if (!cli_says(tree, words[0])) problems.push_back(text(page, ": there is no command ", words[0]));
      for (const std::string& word : words) {
        if (!word.starts_with("--")) continue;
        const std::string name = word.substr(2, word.find('=') - 2);
        if (name != "help" && !tree.options.contains(name) && !cli_says(tree, name)) problems.push_back(text(page, ": there is no option ", word));
      }
      const bool names_something = words.size() > 1 && !words[1].starts_with("--") && words[1] != "LAB" && words[1] != "NOTE";
      if (names_something && (words[0] == "run" || words[0] == "read") && !lab_or_note_exists(tree, words[0], words[1]) && !part_exists(tree, words[1])) {
        problems.push_back(text(page, ": there is nothing to ", words[0], " named ", words[1]));
      }
    }
  }
  return problems;
}

Problems missing_tests(const Tree& tree) {
  static const std::regex name(R"(^`(\w+)\.(\w+)`$)");
  Problems problems;
  for (const std::string& page : tree.pages()) {
    for (const Link& link : parse_markdown(tree.texts.at(page)).links) {
      std::smatch match;
      const std::string path = meant_by(page, link);
      if (!path.starts_with("tests/") || !std::regex_match(link.text, match, name)) continue;
      const std::regex test(R"((TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*)" + match[1].str() + R"(,\s*)" + match[2].str() + R"(\s*\))");
      if (!tree.texts.contains(path) || !std::regex_search(tree.texts.at(path), test)) {
        problems.push_back(text(page, ":", link.line, ": ", path, " has no test ", match[1].str(), ".", match[2].str()));
      }
    }
  }
  return problems;
}

}  // namespace shardbook::tests
