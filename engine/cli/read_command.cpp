#include "engine/cli/read_command.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <ostream>

#include "engine/base/printable.hpp"
#include "engine/book/excerpts.hpp"
#include "engine/cli/markdown.hpp"
#include "engine/book/project.hpp"
#include "engine/workbook/lab.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::Error;
using base::text;

namespace {

// "es" of "text.es.md", "" of "text.md".
std::string language_of(const fs::path& page) {
  const std::string stem = page.stem().string();
  const std::size_t dot = stem.rfind('.');
  return dot == std::string::npos ? "" : stem.substr(dot + 1);
}

// All notes and the labs' texts, from the root, ascending; translations left out.
std::vector<std::string> pages_under(const std::string& root) {
  std::vector<std::string> pages;
  for (const char* folder : {"notes", "labs"}) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(root) / folder, ignored)) {
      if (entry.path().extension() != ".md" || !language_of(entry.path()).empty()) continue;
      if (std::string_view(folder) == "labs" && entry.path().filename() != "text.md") continue;
      pages.push_back(fs::relative(entry.path(), root).generic_string());
    }
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

// How well a page answers to a name: 0 not at all, 3 by its whole name, 2 a note by its number, 1 a lab by its number.
int answers(const std::string& page, const std::string& name) {
  const std::string stem = fs::path(page).stem().string();
  if (stem == name || page == name || page == "notes/" + name) return 3;
  const bool is_note = page.compare(0, 6, "notes/") == 0;
  const std::string number = name.size() == 1 && name[0] >= '0' && name[0] <= '9' ? "0" + name : name;
  const auto has_number = [&](const std::string& of) { return of.compare(0, number.size() + 1, number + "_") == 0; };
  if (is_note && has_number(stem)) return 2;
  // `run 02` names a lab by its number, and so may `read 02` where no note has it.
  return page.compare(0, 5, "labs/") == 0 && has_number(fs::path(page).parent_path().filename().string()) ? 1 : 0;
}

// The translation of a page, where there is one.
std::string translated(const std::string& path, const std::string& language) {
  if (language.empty() || language == "en") return path;
  fs::path other = path;
  other.replace_extension("." + language + ".md");
  std::error_code ignored;
  return fs::exists(other, ignored) ? other.string() : path;
}

int list_pages(const std::string& root, Console& console) {
  const std::vector<std::string> pages = pages_under(root);
  console.out << "./shardbook read NAME; of a note its number is enough\n";
  for (const auto& [title, folder] : {std::pair{"Notes", "notes"}, {"Labs", "labs"}, {"A page a room", "notes/rooms"}}) {
    console.out << "\n" << title << "\n";
    for (const std::string& page : pages) {
      // notes/NAME.md, notes/rooms/NAME.md, labs/NAME/text.md
      const fs::path parent = fs::path(page).parent_path();
      const bool of_lab = page.compare(0, 5, "labs/") == 0;
      if ((of_lab ? parent.parent_path() : parent) != folder) continue;
      base::Result<std::string> content = book::read_text((fs::path(root) / page).string());
      if (!content) return refuse(console, content.error());
      console.out << "  " << pad_right(of_lab ? parent.string() : fs::path(page).stem().string(), 28) << base::printable(title_of(content.value())) << "\n";
    }
  }
  return exit_ok;
}

// Without HTML comments: they are for who makes the page. Those in blocks of code stay.
std::string without_comments(const std::string& page) {
  std::string out;
  bool in_code = false;
  for (std::size_t at = 0; at < page.size();) {
    const bool at_line = at == 0 || page[at - 1] == '\n';
    if (at_line && page.compare(at, 3, "```") == 0) in_code = !in_code;
    const std::size_t end = !in_code && page.compare(at, 4, "<!--") == 0 ? page.find("-->", at) : std::string::npos;
    if (end == std::string::npos) out += page[at++];
    else at = end + 3;
  }
  return out;
}

// A lab's text without the findings of its last chapter: who reads the whole has not predicted yet. That chapter has one anchor in
// all languages, and its own words on how the rest is read.
std::string without_found(const std::string& page) {
  const std::size_t anchor = page.find("\n<a id=\"found\"></a>\n");
  if (anchor == std::string::npos) return page;
  return page.substr(0, std::min(page.find("\n### ", anchor), page.size()));
}

// The part that "00a" names, "" where there is none of that name.
std::string lab_of_part(const std::string& root, const std::string& name) {
  const bool like_one = name.size() == 3 && std::isdigit(static_cast<unsigned char>(name[0])) && std::isalpha(static_cast<unsigned char>(name[2]));
  if (!like_one) return "";
  const base::Result<std::vector<workbook::Lab>> labs = workbook::all_labs(root);
  if (!labs) return "";
  for (const workbook::Lab& lab : labs.value()) {
    for (const workbook::Part& part : lab.parts) {
      if (part.id == name) return lab.name;
    }
  }
  return "";
}

// From "## 00a Title" or "## 00a" to the next chapter; all of the page where that is not there.
std::string chapter_of(const std::string& page, const std::string& part) {
  const std::size_t begin = std::min(page.find("## " + part + " "), page.find("## " + part + "\n"));
  if (begin == std::string::npos) return page;
  std::size_t end = page.find("\n## ", begin);
  // The anchor before the next chapter is that chapter's.
  if (const std::size_t anchor = page.rfind("\n<a id=", end); end != std::string::npos && anchor != std::string::npos && anchor > begin && page.find("\n", anchor + 1) + 1 == end + 1) end = anchor;
  return page.substr(begin, end == std::string::npos ? end : end - begin + 1);
}

// Of notes/05_name.md where there is a lab 05: how that is read. "" where there is none.
std::string lab_of_the_number_of(const std::string& root, const std::string& note) {
  const std::string number = fs::path(note).filename().string().substr(0, 2);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(root) / "labs", ignored)) {
    const std::string folder = entry.path().filename().string();
    if (folder.starts_with(number + "_")) return text("note ", number, ". Lab ", number, " is ./shardbook read labs/", folder, lab_of_part(root, number + "a").empty() ? "" : text(", and its first part ./shardbook read ", number, "a"));
  }
  return "";
}

// "### 00a" of the last chapter: what this part has to find. "" where there is none.
std::string found_in(const std::string& page, const std::string& part) {
  const std::string heading = "\n### " + part + "\n";
  const std::size_t begin = page.find(heading);
  if (begin == std::string::npos) return "";
  const std::size_t end = page.find("\n### ", begin + heading.size());
  return page.substr(begin + 1, end == std::string::npos ? end : end - begin);
}

}  // namespace

base::Result<std::string> find_page(const std::string& root, const std::string& name, const std::string& language) {
  std::error_code ignored;
  for (const fs::path& path : {fs::path(name), fs::path(root) / name}) {
    if (fs::is_directory(path, ignored) && fs::exists(path / "text.md", ignored)) return translated((path / "text.md").string(), language);
    if (fs::is_regular_file(path, ignored)) return translated(path.string(), language);
  }
  std::vector<std::string> best;
  int best_answer = 1;
  std::string list;
  for (const std::string& page : pages_under(root)) {
    const int answer = answers(page, name);
    if (answer > best_answer) best.clear();
    best_answer = std::max(best_answer, answer);
    if (answer == best_answer) best.push_back(page);
    if (page.compare(0, 6, "notes/") == 0 && page.find('/', 6) == std::string::npos) list += (list.empty() ? "" : ", ") + fs::path(page).stem().string();
  }
  if (best.size() > 1) return Error{text("'", name, "' may be ", best[0], " or ", best[1], ": name one by its path")};
  if (best.empty()) return Error{text("there is no note '", name, "'; there is ", list.empty() ? "none here" : list)};
  return translated((fs::path(root) / best.front()).string(), language);
}

int read_note(const Line& line, Console& console) {
  const std::string root = book::project_root();
  if (root.empty()) return refuse(console, "no notes here: start this from within the project's folder, the one that holds labs/ and notes/");
  if (line.places.empty()) return list_pages(root, console);
  // PAGE#00a: the chapter of that part, of a page that has several
  const std::string& named = line.places.front();
  const std::size_t mark = named.find('#');
  const std::string asked = named.substr(0, mark), chapter = mark == std::string::npos ? "" : named.substr(mark + 1);
  const std::string lab = lab_of_part(root, asked);
  base::Result<std::string> path = find_page(root, lab.empty() ? asked : "labs/" + lab, line.value("lang"));
  if (!path) return refuse(console, path.error());
  base::Result<std::string> content = book::read_text(path.value());
  if (!content) return refuse(console, content.error());
  const std::string shown_as = fs::relative(path.value(), root).generic_string();
  const bool whole_lab = lab.empty() && shown_as.starts_with("labs/") && fs::path(shown_as).filename().string().starts_with("text");
  if (line.has("found") && whole_lab) {
    // All of it
  } else if (line.has("found")) {
    if (lab.empty()) return refuse(console, text("--found is of a lab's part, as in `./shardbook read 00a --found`; '", base::printable(asked), "' is none"));
    content.value() = found_in(content.value(), asked);
    if (content.value().empty()) return refuse(console, text("labs/", lab, "/text.md says nowhere what ", asked, " has to find: it has no heading '### ", asked, "'"));
  } else if (!lab.empty()) {
    content.value() = chapter_of(content.value(), asked);
  } else if (!chapter.empty()) {
    content.value() = chapter_of(content.value(), chapter);
  } else if (whole_lab) {
    content.value() = without_found(content.value());
  }
  base::Result<std::vector<book::Excerpt>> excerpts = book::all_excerpts(root);
  if (!excerpts) return refuse(console, excerpts.error());

  // Notes and labs count each for itself: 03 is a note, and another thing is lab 03
  const std::string other = asked.size() <= 2 && shown_as.starts_with("notes/") ? lab_of_the_number_of(root, shown_as) : "";
  PageOptions options;
  options.columns = console.text_columns();
  options.styled = console.out_is_terminal;
  base::Result<std::vector<std::string>> page = page_lines(base::printable(without_comments(content.value()), base::Lines::kept), shown_as, excerpts.value(), options);
  if (!page) return refuse(console, page.error());
  if (!other.empty()) {
    for (const std::string& one : wrap("This is " + other, console.text_columns())) console.out << one << "\n";
    console.out << "\n";
  }
  for (const std::string& one : page.value()) console.out << one << "\n";
  if (!other.empty()) console.out << "\nThat was " << other << "\n";
  return exit_ok;
}

}  // namespace shardbook::cli
