#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using ui::px;

namespace {

// Buttons stand side by side while there is room.
bool flowing_button(const std::string& label, const std::string& hint, bool& first) {
  const float width = ImGui::CalcTextSize(label.c_str()).x + px(18);
  if (!first) {
    ImGui::SameLine(0, px(5));
    if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
  }
  first = false;
  return ui::small_button(label, hint);
}

void draw_parts(const Work& work, Intents& intents) {
  bool first = true;
  for (std::size_t i = 0; i < work.parts.size(); ++i) {
    const Work::Part& part = work.parts[i];
    const std::string label = part.id + (part.passed ? " ✓" : "");
    if (!first) ImGui::SameLine(0, px(3));
    first = false;
    if (ui::tab(label, static_cast<int>(i) == work.current)) intents.push_back({"work.part", std::to_string(i)});
  }
  // The verbs stand beside the parts, always in sight
  const std::string& id = work.parts[static_cast<std::size_t>(work.current)].id;
  ImGui::SameLine(0, px(14));
  const float line = ImGui::GetCursorPosY();
  first = true;
  for (const auto& [label, verb, hint] : {std::tuple{"Check", "check", "is it right?"}, {"Hint", "hint", "the next of three"},
                                          {"Card", "card", "what do you remember?"}, {"Solution", "solution", "after a pass, or three failed checks"}}) {
    const std::string command = std::string("./shardbook ") + verb + (std::string(verb) == "card" ? "" : " " + id);
    if (!first) ImGui::SameLine(0, px(5));
    first = false;
    ImGui::SetCursorPosY(line);
    if (ui::small_button(label, command + ": " + hint)) intents.push_back({"work.do", command});
  }
}

void draw_predictions(Work& work, Intents& intents) {
  if (work.asks.empty()) return;
  ui::heading("Predict first");
  bool all = true;
  // The button stands beside the last field, so that it is seen where the pane is low
  const float button = ui::measure().width("Seal", page::FontKind::body) + px(32);
  for (Work::Ask& ask : work.asks) {
    ui::paragraph(ask.text);
    ImGui::PushID(ask.key.c_str());
    ui::text_field(ask.unit.empty() ? ask.key : ask.key + " (" + ask.unit + ")", &ask.draft, std::min(px(220), ImGui::GetContentRegionAvail().x - button));
    ImGui::PopID();
    all &= !ask.draft.empty() && ask.draft.find(' ') == std::string::npos;
  }
  ImGui::SameLine(0, px(8));
  if (ui::button("Seal", all ? "A prediction is kept as it is now, and comes back beside what was found" : "Every field needs a guess, without blanks", all)) {
    std::string command = "./shardbook next " + work.parts[static_cast<std::size_t>(work.current)].id;
    for (const Work::Ask& ask : work.asks) command += " " + ask.key + "=" + ask.draft;
    intents.push_back({"work.do", command});
  }
}

// "metrics …/gpt-1.3b-fsdp4.tar.gz" of "./shardbook metrics experiments/captured/gpt-1.3b-fsdp4.tar.gz"; all of it comes by hover,
// and above what it says.
std::string brief(const std::string& command) {
  std::string words = command.starts_with("./shardbook ") ? command.substr(12) : command;
  for (std::size_t at = words.find("experiments/"); at != std::string::npos; at = words.find("experiments/", at + 1)) {
    const std::size_t end = std::min(words.find(' ', at), words.size()), name = words.rfind('/', end - 1);
    words.replace(at, name - at, "…");
  }
  return words;
}

void draw_commands(const Work& work, Intents& intents) {
  const std::string& id = work.parts[static_cast<std::size_t>(work.current)].id;
  bool first = true;
  if (work.reads && flowing_button("Sources and notes", "L: the files beside what you write about them", first)) intents.push_back({"reading", ""});
  for (const std::string& command : work.commands) {
    // The last step of each part is judged by the button above
    if (command == "./shardbook check " + id) continue;
    // All of a long one comes by hover
    std::string label = brief(command);
    while (label.size() > 8 && ui::measure().width(label, page::FontKind::small) + px(20) > ImGui::GetContentRegionAvail().x) label.replace(label.size() - (label.ends_with("…") ? 4 : 1), std::string::npos, "…");
    if (flowing_button(label, command, first)) intents.push_back({"work.do", command});
  }
}

void draw_output(const Work& work, Intents& intents) {
  if (work.command.empty()) return;
  ImGui::PushFont(ui::font(page::FontKind::mono));
  ui::words_line(work.command);
  ImGui::PopFont();
  ui::dim_line(work.ended);
  if (work.running) {
    if (ui::small_button("Cancel", "As Ctrl-C does")) intents.push_back({"work.cancel", ""});
  } else if (!work.run.empty()) {
    if (ui::small_button("Open the run", work.run)) intents.push_back({"open", work.run});
  }
  ui::note_words(work.output);
  ImGui::BeginChild("output", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
  ImGui::PushFont(ui::font(page::FontKind::mono));
  ImGui::TextUnformatted(work.output.data(), work.output.data() + work.output.size());
  ImGui::PopFont();
  if (work.running) ImGui::SetScrollHereY(1);
  ImGui::EndChild();
}

}  // namespace

Intents draw_work(Work& work) {
  Intents intents;
  if (work.parts.empty()) {
    ui::dim_line("This page has no steps: open a lab (Ctrl+O).");
    return intents;
  }
  work.columns = static_cast<int>((ImGui::GetContentRegionAvail().x - px(14)) / ui::measure().width("0", page::FontKind::mono));
  draw_parts(work, intents);
  ui::words_line(work.parts[static_cast<std::size_t>(work.current)].words);
  if (!work.state.empty()) ui::dim_line(work.state);
  if (!work.question.empty()) ui::paragraph(work.question);
  if (!work.file.empty()) ui::dim_line("You edit " + work.file);
  draw_predictions(work, intents);
  draw_commands(work, intents);
  draw_output(work, intents);
  return intents;
}

}  // namespace shardbook::views
