#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

Intents draw_library(const Library& library) {
  Intents intents;
  const auto section = [&](const char* title, const std::vector<Library::Entry>& entries, const char* intent, const char* if_empty) {
    ui::heading(title);
    if (entries.empty()) ui::dim_line(if_empty);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      ImGui::PushID(title);
      ImGui::PushID(static_cast<int>(i));
      if (ui::row(entries[i].title, false, entries[i].right)) intents.push_back({intent, entries[i].target});
      ImGui::PopID();
      ImGui::PopID();
    }
    ImGui::Spacing();
  };
  section("Labs", library.labs, "follow", "No labs here: start this from within the project's folder.");
  section("Notes", library.notes, "follow", "No notes here: start this from within the project's folder.");
  section("Runs", library.runs, "open", "No runs yet. In a terminal: ./shardbook run 02");
  section("Rooms of the engine", library.rooms, "follow", "");
  ui::dim_line("A file or folder can also be dropped on the window.");
  return intents;
}

}  // namespace shardbook::views
