// Rules on what pages say of the engine: spans, rooms, arrows, commands, tests.
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

std::string room_of(const std::string& path) {
  const std::size_t begin = std::string("engine/").size();
  return path.substr(begin, path.find('/', begin) - begin);
}

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().generic_string(); }

// The file that a link of a page means, from the root.
std::string meant_by(const std::string& page, const Link& link) {
  return (std::filesystem::path(folder_of(page)) / link.target.substr(0, link.target.find('#'))).lexically_normal().generic_string();
}

// Where each span is, and what is wrong with their marks.
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

// What CMake is told of a room.
struct Room {
  std::string floor;
  std::set<std::string> uses;
};

std::map<std::string, Room> find_rooms(const Tree& tree) {
  static const std::regex call(R"(shardbook_room\(\s*(\w+)\s+FLOOR\s+(\d+)([^)]*)\))");
  std::map<std::string, Room> rooms;
  for (const auto& [path, content] : tree.texts) {
    std::smatch match;
    if (!path.starts_with("engine/") || !path.ends_with("CMakeLists.txt") || !std::regex_search(content, match, call)) continue;
    Room& room = rooms[match[1]];
    room.floor = match[2];
    bool in_uses = false;
    for (const std::string& word : words_of(match[3])) {
      if (word == "SOURCES" || word == "LIBRARIES") in_uses = false;
      else if (word == "USES") in_uses = true;
      else if (in_uses) room.uses.insert(word);
    }
  }
  return rooms;
}

}  // namespace

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

Problems missing_rooms(const Tree& tree) {
  Problems problems;
  const std::map<std::string, Room> rooms = find_rooms(tree);
  const std::string index = tree.texts.contains("notes/README.md") ? tree.texts.at("notes/README.md") : "";
  for (const auto& [name, room] : rooms) {
    const std::string path = "notes/rooms/" + name + ".md";
    if (!tree.texts.contains(path)) {
      problems.push_back(text("room ", name, " has no page ", path));
      continue;
    }
    const std::string& page = tree.texts.at(path);
    const std::string floor = text("\n\nFloor ", room.floor, ", [engine/", name, "](../../engine/", name, ").\n");
    if (!page.starts_with(text("# ", name, ": ")) || page.find(floor) != page.find('\n')) {
      problems.push_back(text(path, " must begin with its name and question, then floor ", room.floor, " and its folder"));
    }
    const std::string row = text("| ", room.floor, " |");
    const std::size_t line = index.find(row), link = index.find(text("[", name, "](rooms/", name, ".md)"));
    const std::size_t next = index.find('\n', std::min(line, index.size()));
    if (line == std::string::npos || link == std::string::npos || link < line || link > next) {
      problems.push_back(text("notes/README.md: ", name, " is missing from floor ", room.floor));
    }
  }
  for (const std::string& page : tree.pages()) {
    if (!page.starts_with("notes/rooms/")) continue;
    const std::string name = std::filesystem::path(page).stem().string();
    if (!rooms.contains(name)) problems.push_back(text(page, ": there is no room ", name));
  }
  return problems;
}

Problems upward_includes(const Tree& tree) {
  static const std::regex include(R"re(^\s*#\s*include\s+"engine/(\w+)/[^"]*")re");
  const std::map<std::string, Room> rooms = find_rooms(tree);
  Problems problems;
  for (const auto& [name, room] : rooms) {
    for (const std::string& used : room.uses) {
      const auto below = rooms.find(used);
      if (below == rooms.end() || std::stoi(below->second.floor) >= std::stoi(room.floor)) {
        problems.push_back(text("room ", name, " on floor ", room.floor, " may not use ", used));
      }
    }
  }
  for (const auto& [path, content] : tree.texts) {
    if (!path.starts_with("engine/")) continue;
    const auto room = rooms.find(room_of(path));
    int number = 0;
    for (const std::string& line : lines_of(content)) {
      ++number;
      std::smatch match;
      if (room == rooms.end() || !std::regex_search(line, match, include)) continue;
      if (match[1] != room->first && !room->second.uses.contains(match[1])) {
        problems.push_back(text(path, ":", number, ": room ", room->first, " includes ", match[1].str(), ", which it does not use"));
      }
    }
  }
  return problems;
}

Problems false_arrows(const Tree& tree) {
  const std::string page = "notes/map.md";
  const std::map<std::string, Room> rooms = find_rooms(tree);
  if (!tree.texts.contains(page)) return {page + " is missing"};
  const Markdown markdown = parse_markdown(tree.texts.at(page));
  const auto diagram = std::find_if(markdown.fences.begin(), markdown.fences.end(), [](const Fence& fence) { return fence.info == "mermaid"; });
  if (diagram == markdown.fences.end()) return {page + " has no diagram"};

  Problems problems;
  std::set<std::string> drawn;
  for (const std::string& line : diagram->content) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() != 3 || words[1] != "-->") continue;
    drawn.insert({words[0], words[2]});
    const auto room = rooms.find(words[0]);
    if (room == rooms.end() || !room->second.uses.contains(words[2])) problems.push_back(text(page, ": ", words[0], " does not use ", words[2]));
  }
  for (const auto& [name, room] : rooms) {
    if (name != "base" && !drawn.contains(name)) problems.push_back(text(page, ": the room ", name, " is not on the map"));
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
      if (names_something && (words[0] == "run" || words[0] == "read") && !lab_or_note_exists(tree, words[0], words[1])) {
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
