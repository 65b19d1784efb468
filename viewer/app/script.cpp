// app/script: lines carried out; see script.hpp.
#include "viewer/app/script.hpp"

#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/nearest.hpp"
#include "viewer/app/script_lines.hpp"
#include "viewer/ui/imgui_version.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::app {

namespace {

constexpr int longest_wait_s = 120;      // until the desk is idle
constexpr int hover_frames = 40;         // longer than a hint waits

// One blank for each stretch of blanks and line ends: where a line breaks depends on the width.
std::string smooth(const std::string& words) {
  std::string out;
  for (char c : words) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank) out += c;
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

bool is_visible(const ui::Spot& spot) { return spot.from.x < spot.to.x && spot.from.y < spot.to.y; }

class Runner {
 public:
  Runner(Desk& desk, Picture& picture) : desk_(desk), picture_(picture) {}

  base::Status start() { return settle(); }
  base::Status act(const ScriptLine& line);
  // What the desk could not do since it was last asked; kept until it is known whether the next line expects it.
  std::string problem() { return desk_.problem(); }

 private:
  base::Status settle(int least_frames = 2);
  void frames(int count) {
    for (int i = 0; i < count; ++i) picture_.frame(desk_);
  }
  base::Result<std::string> replaced(const std::string& word) const;
  base::Result<ImVec2> place_of(const std::string& label) const;
  base::Status press_keys(const std::string& keys);
  base::Status with_mouse(const ScriptLine& line, const std::vector<std::string>& words);
  base::Status expect(const std::vector<std::string>& words);
  base::Result<std::string> value(const std::string& name) const;
  bool is_on_screen(const std::string& words) const;
  void mouse_to(ImVec2 at) { ImGui::GetIO().MousePos = at; }
  void mouse_away() { mouse_to({-1e6F, -1e6F}); }

  Desk& desk_;
  Picture& picture_;
  std::map<std::string, std::string> saved_;
};

base::Status Runner::settle(int least_frames) {
  // At least this many, so that what was done shows; then until nothing will change by itself.
  frames(least_frames);
  const auto begin = std::chrono::steady_clock::now();
  while (!desk_.idle()) {
    frame_beside_work(desk_, picture_);
    if (desk_.idle()) break;
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(longest_wait_s)) {
      return base::Error{base::text("the viewer is still at work after ", longest_wait_s, " s")};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return base::Done{};
}

base::Result<std::string> Runner::replaced(const std::string& word) const {
  if (word.size() < 2 || word[0] != '$') return word;
  const auto found = saved_.find(word.substr(1));
  if (found == saved_.end()) return base::Error{base::text("nothing was saved as ", word.substr(1))};
  return found->second;
}

// The middle of what has this label; "pane/label" names its pane, too.
base::Result<ImVec2> Runner::place_of(const std::string& label) const {
  const ui::Spot* hidden = nullptr;
  std::vector<std::string> others;
  for (const ui::Spot& spot : ui::spots()) {
    if (spot.label == label || spot.pane + "/" + spot.label == label) {
      if (is_visible(spot)) return ImVec2((spot.from.x + spot.to.x) / 2, (spot.from.y + spot.to.y) / 2);
      hidden = &spot;
    } else if (is_visible(spot)) {
      others.push_back(spot.label);
    }
  }
  if (hidden != nullptr) return base::Error{base::text("\"", label, "\" is out of sight: scroll \"", hidden->pane, "\" N brings it")};
  if (others.empty()) return base::Error{base::text("there is no \"", label, "\" and nothing else to click")};
  return base::Error{base::text("there is no \"", label, "\" on the screen; the nearest is \"", base::nearest(label, others), "\"")};
}

base::Status Runner::press_keys(const std::string& keys) {
  const auto rows = ui::chords_of(keys);
  if (rows.size() != 1) return base::Error{base::text("'", keys, "' is no key")};
  for (const ui::Chord& chord : rows[0]) {
    if (chord.key < 0) return base::Error{base::text("there is no key called '", keys, "'")};
    // Down for one frame, with what is held beside it; a field that is typed into gets the sign as well.
    ui::feed_held(chord.ctrl, chord.shift, chord.alt);
    ui::feed_key(chord.key, true);
    if (chord.typed != 0) ImGui::GetIO().AddInputCharacter(chord.typed);
    frames(1);
    ui::feed_key(chord.key, false);
    ui::feed_held(false, false, false);
    frames(1);
  }
  return settle();
}

base::Status Runner::with_mouse(const ScriptLine& line, const std::vector<std::string>& words) {
  base::Result<ImVec2> place = place_of(words[0]);
  if (!place) return place.as_error();
  ImGuiIO& io = ImGui::GetIO();
  mouse_to(place.value());
  frames(2);
  if (line.verb == "hover") {
    frames(hover_frames);
    return settle();
  }
  if (line.verb == "scroll") {
    io.MouseWheel = static_cast<float>(read_number(words[1]).value());
    frames(1);
    io.MouseWheel = 0;
    mouse_away();
    return settle();
  }
  io.MouseDown[0] = true;
  frames(1);
  if (line.verb == "drag") {
    constexpr int steps = 6;
    const auto dx = static_cast<float>(read_number(words[1]).value()), dy = static_cast<float>(read_number(words[2]).value());
    for (int i = 1; i <= steps; ++i) {
      const float share = static_cast<float>(i) / steps;
      mouse_to({place.value().x + dx * share, place.value().y + dy * share});
      frames(1);
    }
  }
  io.MouseDown[0] = false;
  frames(1);
  // Away, so that no hint comes up by how long the desk was at work.
  mouse_away();
  return settle();
}

bool Runner::is_on_screen(const std::string& words) const {
  const std::string wanted = smooth(words);
  for (const std::string& drawn : ui::words()) {
    if (smooth(drawn).find(wanted) != std::string::npos) return true;
  }
  return std::any_of(ui::spots().begin(), ui::spots().end(), [&](const ui::Spot& spot) {
    return is_visible(spot) && smooth(spot.label).find(wanted) != std::string::npos;
  });
}

base::Result<std::string> Runner::value(const std::string& name) const {
  const std::optional<std::string> found = desk_.value(name);
  if (!found) return base::Error{base::text("there is no value called ", name)};
  return *found;
}

base::Status Runner::expect(const std::vector<std::string>& words) {
  if (words.size() == 1) {
    if (is_on_screen(words[0])) return base::Done{};
    std::vector<std::string> others;
    for (const std::string& drawn : ui::words()) {
      if (drawn.size() < 200) others.push_back(smooth(drawn));
    }
    for (const ui::Spot& spot : ui::spots()) {
      if (is_visible(spot)) others.push_back(smooth(spot.label));
    }
    return base::Error{others.empty() ? base::text("\"", words[0], "\" is not on the screen, and no other words are")
                                      : base::text("\"", words[0], "\" is not on the screen; the nearest is \"", base::nearest(words[0], others), "\"")};
  }
  base::Result<std::string> got = value(words[0]);
  if (!got) return got.as_error();
  const std::string sign = words.size() == 2 ? "=" : words[1];
  const std::string& wanted = words.back();
  const auto unlike = [&](const std::string& relation) { return base::Error{base::text(words[0], " is \"", got.value(), "\", not ", relation, "\"", wanted, "\"")}; };
  if (sign == "=") return got.value() == wanted ? base::Status(base::Done{}) : unlike("");
  if (sign == "!=") return got.value() != wanted ? base::Status(base::Done{}) : unlike("anything but ");
  if (sign == "~") return got.value().find(wanted) != std::string::npos ? base::Status(base::Done{}) : unlike("something with ");
  const base::Result<double> left = read_number(got.value()), right = read_number(wanted);
  if (!left) return base::Error{base::text(words[0], " is \"", got.value(), "\", which is no number")};
  if (!right) return base::Error{base::text("'", wanted, "' is no number")};
  const double a = left.value(), b = right.value();
  const bool holds = sign == ">" ? a > b : sign == "<" ? a < b : sign == ">=" ? a >= b : a <= b;
  return holds ? base::Status(base::Done{}) : unlike(sign + " ");
}

base::Status Runner::act(const ScriptLine& line) {
  // $NAME first.
  std::vector<std::string> words;
  for (const std::string& word : line.words) {
    base::Result<std::string> ready = replaced(word);
    if (!ready) return ready.as_error();
    words.push_back(ready.value());
  }
  const std::string& verb = line.verb;
  if (verb == "click" || verb == "hover" || verb == "drag" || verb == "scroll") return with_mouse(line, words);
  if (verb == "expect") return expect(words);
  if (verb == "refuse") return is_on_screen(words[0]) ? base::Status(base::Error{base::text("\"", words[0], "\" is on the screen")}) : base::Done{};
  if (verb == "key") return press_keys(words[0]);
  if (verb == "wait") {
    frames(words.empty() ? 1 : std::clamp(static_cast<int>(read_number(words[0]).value()), 1, 100'000));
    return settle();
  }
  if (verb == "type") {
    if (!ImGui::GetIO().WantTextInput) return base::Error{"no field is being typed into: click one first"};
    ImGui::GetIO().AddInputCharactersUTF8(words[0].c_str());
    return settle();
  }
  if (verb == "size") {
    const float scale = words.size() > 2 ? static_cast<float>(std::clamp(read_number(words[2]).value(), 0.5, 4.0)) : picture_.screen_scale();
    picture_.resize(static_cast<int>(read_number(words[0]).value()), static_cast<int>(read_number(words[1]).value()), scale);
    return settle(3);
  }
  if (verb == "shot") {
    base::Status ready = settle();
    return ready ? write_png(picture_.pixels(), words[0]) : ready;
  }
  if (verb == "save") {
    base::Result<std::string> got = value(words[0]);
    if (!got) return got.as_error();
    saved_[words[2]] = got.value();
    return base::Done{};
  }
  // The rest are commands to the desk.
  if (verb == "open") {
    std::string paths;      // named together, as on the command line
    for (const std::string& path : words) paths += (paths.empty() ? "" : "\n") + path;
    desk_.act({"open", paths});
  } else if (verb == "theme") {
    if (desk_.dark() != (words[0] == "dark")) desk_.act({"theme", words[0]});
  } else if (verb == "layout") {
    desk_.act({"layout." + words[0], ""});
  } else if (verb == "cmd") {
    desk_.act({words[0], words.size() > 1 ? words[1] : ""});
  }
  return settle(3);
}

}  // namespace

base::Status run_script(const std::string& text, const std::string& name, Desk& desk, Picture& picture) {
  base::Result<std::vector<ScriptLine>> lines = script_lines(text, name);
  if (!lines) return lines.as_error();
  Runner runner(desk, picture);
  std::string pending;       // a problem that the next line may expect
  int pending_line = 0;
  const auto wrong = [&](int number, const std::string& what) { return base::Error{base::text(name, ":", number, ": ", what)}; };
  base::Status ready = runner.start();
  if (!ready) return wrong(1, ready.error());
  pending = runner.problem();
  for (const ScriptLine& line : lines.value()) {
    const bool about_it = line.verb == "expect" && line.words.size() > 1 && line.words[0] == "problem";
    if (!pending.empty() && !about_it) return wrong(pending_line == 0 ? line.number : pending_line, pending);
    base::Status done = runner.act(line);
    if (!done) return wrong(line.number, base::text(line.text, ": ", done.error()));
    pending = runner.problem();
    pending_line = line.number;
  }
  if (!pending.empty()) return wrong(pending_line, pending);
  return base::Done{};
}

}  // namespace shardbook::app
