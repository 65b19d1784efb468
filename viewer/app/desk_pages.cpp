// Text and source: pages of the project, the lines of the engine that a run names, and the way between them.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <string_view>

#include "engine/book/project.hpp"
#include "engine/timeline/run_info.hpp"
#include "viewer/app/desk_state.hpp"
#include "viewer/lanes/camera.hpp"
#include "viewer/page/markdown.hpp"
#include "viewer/scene/navigate.hpp"

namespace shardbook::app {

namespace fs = std::filesystem;
using base::text;
using scene::Link;

namespace {

std::string language_of(const std::string& path) {
  return path.ends_with(".py") ? "python" : path.ends_with(".sh") ? "sh" : path.ends_with(".json") ? "json" : "cpp";
}

std::string first_heading(const std::string& content) {
  return content.starts_with("# ") ? content.substr(2, content.find('\n') - 2) : "";
}

// The page that a link's target means: "notes/03" is notes/03_tensor_parallel.md, "labs/02" that lab's text. "" if none.
std::string complete(const std::string& root, const std::string& target) {
  for (const std::string& path : page_paths(root)) {
    const bool is_it = path == target || path == target + ".md" || path == target + "/text.md";
    const bool begins = path.starts_with(target + "_") && (path.starts_with("notes/") || path.ends_with("/text.md"));
    if (is_it || begins) return path;
  }
  return "";
}

}  // namespace

std::vector<std::string> page_paths(const std::string& root) {
  std::vector<std::string> paths;
  if (root.empty()) return paths;
  std::error_code ignored;
  for (const std::string& lab : book::lab_names(root)) {
    for (const char* file : {"text.md", "text.es.md"}) {
      if (fs::exists(fs::path(root) / "labs" / lab / file, ignored)) paths.push_back("labs/" + lab + "/" + file);
    }
  }
  for (const char* folder : {"notes", "notes/rooms"}) {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(root) / folder, ignored)) {
      if (entry.path().extension() == ".md") found.push_back(std::string(folder) + "/" + entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

std::string link_of_page(const std::string& path) {
  const fs::path page = path;
  if (path.starts_with("labs/") && page.filename() == "text.md") return "lab:" + page.parent_path().filename().string();
  if (path.starts_with("notes/rooms/")) return "room:" + page.stem().string();
  return "note:" + page.stem().string();
}

// Calls `found` with what stands between each `before` and the first character that `inside` refuses, and where that stands.
void each_behind(std::string_view page, std::string_view before, bool (*inside)(char), const std::function<void(std::string_view, std::size_t)>& found) {
  for (std::size_t at = page.find(before); at != std::string_view::npos; at = page.find(before, at)) {
    const std::size_t begin = at + before.size();
    for (at = begin; at < page.size() && inside(page[at]);) ++at;
    found(page.substr(begin, at - begin), at);
  }
}

// A page names a span in a fence or a link `span:`, and a file of the engine by its path.
PageIndex index_pages(const std::string& root) {
  PageIndex index;
  const auto no_fence = [](char c) { return c != '`'; };
  const auto of_path = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/'; };
  const auto of_span = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; };
  for (const std::string& path : page_paths(root)) {
    // How notes are written is no note about what they name.
    if (path.ends_with(".es.md") || path == "notes/README.md") continue;
    const base::Result<std::string> content = book::read_text((fs::path(root) / path).string());
    if (!content) continue;
    const std::string& page = content.value();
    const std::string title = first_heading(page).empty() ? path : first_heading(page);
    const auto add = [&](std::map<std::string, std::vector<std::pair<std::string, std::string>>>& map, std::string name) {
      while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
      auto& list = map[name];
      if (std::none_of(list.begin(), list.end(), [&](const auto& one) { return one.second == title; })) list.emplace_back(link_of_page(path), title);
    };
    const std::string_view whole = page;
    each_behind(whole, "```span", no_fence, [&](std::string_view body, std::size_t end) {
      const std::size_t name = body.find_first_not_of(" \t\r\n");
      const bool own_line = name != std::string_view::npos && body.substr(0, name).find('\n') != std::string_view::npos;
      if (own_line && whole.substr(end).starts_with("```")) add(index.by_span, std::string(body.substr(name)));
    });
    each_behind(whole, "(span:", of_span, [&](std::string_view name, std::size_t end) {
      if (!name.empty() && whole.substr(end).starts_with(")")) add(index.by_span, std::string(name));
    });
    each_behind(whole, "engine/", of_path, [&](std::string_view name, std::size_t end) {
      for (const std::string_view ending : {".cpp", ".hpp", ".cuh", ".cu"}) {
        if (name.empty() || !whole.substr(end).starts_with(ending)) continue;
        add(index.by_file, text("engine/", name, ending));
        break;
      }
    });
  }
  return index;
}

const std::vector<book::Excerpt>& Desk::Impl::excerpts() {
  if (!excerpts_) {
    base::Result<std::vector<book::Excerpt>> all = book::all_excerpts(options.root);
    if (!all) fail(all.error());
    excerpts_ = all ? std::move(all.value()) : std::vector<book::Excerpt>{};
  }
  return *excerpts_;
}

const PageIndex& Desk::Impl::pages() {
  if (!pages_) pages_ = index_pages(options.root);
  return *pages_;
}

void Desk::Impl::follow(const std::string& words) {
  base::Result<Link> parsed = scene::parse_link(words, page.path);
  if (!parsed) {
    fail(parsed.error());
    return;
  }
  const Link& link = parsed.value();
  switch (link.kind) {
    case Link::Kind::page: show_page(link.target, link.anchor, true); return;
    case Link::Kind::span: show_span(link.target); return;
    case Link::Kind::source: show_source(link.target, link.line); return;
    case Link::Kind::web:
      ImGui::SetClipboardText(link.target.c_str());
      hint = "copied, for your browser: " + link.target;
      return;
    case Link::Kind::trace: break;
  }
  // A view of a run: of the one in front, of one that is open, or of one to be opened.
  if (link.target.empty()) {
    if (loader || !waiting.empty()) pending_link = link;      // it is about the run that is being opened
    else if (OpenRun* one = run()) apply(link, *one);
    else fail("this link shows a view of a run, and none is open");
    return;
  }
  // As `open` does: what lies where the user stands, else what lies in the project.
  std::error_code there;
  const bool as_it_is = fs::path(link.target).is_absolute() || options.root.empty() || fs::exists(link.target, there);
  const std::string path = as_it_is ? link.target : (fs::path(options.root) / link.target).string();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::error_code differs;
    if (runs[i]->paths.size() != 1 || !fs::equivalent(runs[i]->paths.front(), path, differs)) continue;
    current = static_cast<int>(i);
    apply(link, *runs[i]);
    return;
  }
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    fail(text("the run ", link.target, " is not here"));
    return;
  }
  pending_link = link;
  open_together({path});
}

void Desk::Impl::apply(const Link& link, OpenRun& one) {
  lanes::PlotState& plot = one.plot;
  for (const std::string& row : link.pins) plot.choices.pinned.insert(row);
  for (const std::string& row : link.open) plot.choices.open.insert(row);
  if (!link.selected.empty()) act({"select", link.selected});
  if (link.start && link.end && *link.end > *link.start) {
    // Times of a link count from the start of the run's device work, as the ruler does.
    const metrics::Window whole = one.scene->whole();
    if (*link.start >= whole.length() || *link.end <= 0) {
      fail(text("the link shows ", metrics::duration_text(*link.start), " to ", metrics::duration_text(*link.end), ", and the run has ", metrics::duration_text(whole.length())));
      return;
    }
    keep_view();
    lanes::show(plot.view, {whole.start + *link.start, whole.start + *link.end}, whole, 0);
  }
  if (layout == "read") layout = "split";
}

std::string Desk::Impl::link_to_view() const {
  const OpenRun* one = run();
  Link link;
  link.kind = Link::Kind::trace;
  std::error_code ignored;
  const fs::path relative = options.root.empty() ? fs::path() : fs::relative(one->paths.front(), options.root, ignored);
  link.target = !relative.empty() && *relative.begin() != ".." ? relative.generic_string() : one->paths.front();
  const base::Nanoseconds zero = one->scene->whole().start;
  link.start = static_cast<base::Nanoseconds>(one->plot.view.start) - zero;
  link.end = static_cast<base::Nanoseconds>(one->plot.view.end) - zero;
  link.pins.assign(one->plot.choices.pinned.begin(), one->plot.choices.pinned.end());
  link.open.assign(one->plot.choices.open.begin(), one->plot.choices.open.end());
  if (one->plot.selected.valid()) link.selected = scene::span_name(*one->scene, one->plot.selected);
  return scene::link_text(link);
}

void Desk::Impl::show_page(const std::string& target, const std::string& anchor, bool into_history) {
  const std::string path = complete(options.root, target);
  const base::Result<std::string> content = path.empty() ? base::Result<std::string>(base::Error{text("there is no page called ", target)}) : book::read_text((fs::path(options.root) / path).string());
  if (!content) {
    fail(content.error());
    return;
  }
  if (into_history && !page.path.empty()) {
    page_back.push_back({page.path, reader.page.top_anchor()});
    page_forward.clear();
  }
  if (page.path != path || reader.title.empty()) {
    page::Document document = page::parse_markdown(content.value(), path, excerpts());
    if (!document.problems.empty()) fail(document.problems.front());
    reader.title = document.title.empty() ? path : document.title;
    reader.page.set(std::move(document), (fs::path(options.root) / path).parent_path().string());
  }
  page = {path, anchor};
  reader.page.scroll_to(anchor);
  show_library = false;
  if (layout == "trace") layout = "split";
}

const timeline::SourceExcerpt* Desk::Impl::kept_source(const std::string& path) const {
  const OpenRun* one = run();
  if (one == nullptr || one->scene->info() == nullptr) return nullptr;
  for (const timeline::SourceExcerpt& source : one->scene->info()->sources) {
    if (source.path == path) return &source;
  }
  return nullptr;
}

// Where the run that is open keeps this file with the span in it, there; else as it is now.
void Desk::Impl::show_span(const std::string& name) {
  const auto named = [&](const book::Excerpt& excerpt) { return excerpt.name == name; };
  const auto now = std::find_if(excerpts().begin(), excerpts().end(), named);
  if (now == excerpts().end()) {
    fail(text("there is no span called ", name, " in the engine"));
    return;
  }
  if (const timeline::SourceExcerpt* kept = kept_source(now->path)) {
    const base::Result<std::vector<book::Excerpt>> of_then = book::excerpts_of(kept->content, now->path);
    const auto then = of_then ? std::find_if(of_then.value().begin(), of_then.value().end(), named) : std::vector<book::Excerpt>::const_iterator{};
    if (of_then && then != of_then.value().end()) return show_source(now->path, then->line, kept);
  }
  show_source(now->path, now->line, nullptr);
}

void Desk::Impl::show_source(const std::string& path, int line) { show_source(path, line, kept_source(path)); }

void Desk::Impl::show_source(const std::string& path, int line, const timeline::SourceExcerpt* kept) {
  views::SourceState shown;
  shown.path = path;
  shown.line = line;

  // The text as it was when the run was made; else as it stands now.
  const std::string now_path = options.root.empty() ? "" : (fs::path(options.root) / path).string();
  const base::Result<std::string> now = now_path.empty() ? base::Error{"no project here"} : book::read_text(now_path);
  const OpenRun* one = run();
  if (kept != nullptr) {
    shown.code.text = kept->content;
    shown.changed = !now || timeline::hash_text(now.value()) != kept->hash;
    shown.standing = !shown.changed ? "As it was when this run was made, and as it is now."
                     : now          ? "As it was when this run was made. The file has changed since."
                                    : "As it was when this run was made. There is no such file here now.";
  } else if (now) {
    shown.code.text = now.value();
    shown.standing = kept_source(path) != nullptr ? "As it is now; when this run was made, the file had no such span."
                     : one != nullptr             ? "As it is now; the run that is open keeps no copy of this file."
                                                  : "";
  } else {
    fail(text("cannot show ", path, ": the run keeps no copy of it, and ", now.error()));
    return;
  }
  shown.code.language = language_of(path);
  shown.code.marked = line;
  shown.code.scroll = true;

  // The spans of the book around the line: the shortest one that holds it, then those around that.
  std::vector<book::Excerpt> around;
  if (base::Result<std::vector<book::Excerpt>> spans = book::excerpts_of(shown.code.text, path)) {
    for (book::Excerpt& excerpt : spans.value()) {
      if (line >= excerpt.line && line < excerpt.line + static_cast<int>(excerpt.text.size())) around.push_back(std::move(excerpt));
    }
  }
  std::stable_sort(around.begin(), around.end(), [](const book::Excerpt& a, const book::Excerpt& b) { return a.text.size() < b.text.size(); });
  const auto add_notes = [&](const auto& map, const std::string& key) {
    const auto found = map.find(key);
    if (found == map.end()) return;
    for (const auto& [link, title] : found->second) {
      const bool there = std::any_of(shown.notes.begin(), shown.notes.end(), [&, &link = link](const auto& note) { return note.link == link; });
      if (!there && shown.notes.size() < 5) shown.notes.push_back({link, title, key});
    }
  };
  for (const book::Excerpt& excerpt : around) add_notes(pages().by_span, excerpt.name);
  if (!around.empty()) {
    shown.span = around.front().name;
    shown.span_title = around.front().title;
  }
  add_notes(pages().by_file, path);
  source = std::move(shown);
  source_of = one != nullptr ? one->plot.selected : scene::SpanRef{};
  panel = "source";
  drawer = true;
}

// The line that launched the selection; pressed again there, the line of the event that it awaited.
void Desk::Impl::go_source() {
  const OpenRun* one = run();
  if (one == nullptr || !one->plot.selected.valid()) {
    hint = "select a span first, then G shows the line that launched it";
    return;
  }
  const timeline::Timeline& timeline = one->scene->timeline();
  const timeline::Detail& detail = timeline.detail(one->plot.selected);
  if (!detail.leading().known()) {
    hint = "this trace names no source line for this span";
    return;
  }
  const auto place = [&](timeline::Line line) { return std::pair<std::string, int>{std::string(timeline.strings[line.file]), line.line}; };
  const auto [path, line] = place(detail.leading());
  const bool there = panel == "source" && source.path == path && source.line == line;
  if (there && detail.awaits.known()) {
    const auto [awaited_path, awaited_line] = place(detail.awaits);
    show_source(awaited_path, awaited_line);
    hint = "the event that it awaited is recorded here; G goes back to the launch";
    return;
  }
  show_source(path, line);
  if (detail.awaits.known()) hint = "G again: the event that it awaited, " + timeline::line_text(timeline, detail.awaits);
}

void Desk::Impl::go_note() {
  const OpenRun* one = run();
  if (one == nullptr || !one->plot.selected.valid()) {
    hint = "select a span first, then T shows the note about it";
    return;
  }
  const timeline::Timeline& timeline = one->scene->timeline();
  const timeline::Detail& detail = timeline.detail(one->plot.selected);
  if (!detail.leading().known()) {
    hint = "this trace names no source line, so no note speaks of it";
    return;
  }
  show_source(std::string(timeline.strings[detail.leading().file]), detail.leading().line);
  if (!shown_problem.empty() && source.path.empty()) return;
  if (!source.notes.empty()) {
    // At the paragraph that speaks of it: of the span of the book, else of the file.
    const views::SourceState::Note note = source.notes.front();
    follow(note.link);
    reader.page.scroll_to_mention(note.mentions);
    return;
  }
  // No page names it: the page of its room.
  const std::string path = source.path;
  const std::size_t room = path.find('/'), end = path.find('/', room + 1);
  if (path.starts_with("engine/") && end != std::string::npos) follow("room:" + path.substr(room + 1, end - room - 1));
}

void Desk::Impl::turn_page(std::vector<PagePlace>& from, std::vector<PagePlace>& to) {
  if (from.empty()) return;
  const PagePlace place = from.back();
  from.pop_back();
  to.push_back({page.path, reader.page.top_anchor()});
  show_page(place.path, place.anchor, false);
}

}  // namespace shardbook::app
