// app/view_command: a window, a picture, or a script; see command_line.hpp.
#include <ostream>

#include "engine/base/check.hpp"
#include "engine/book/project.hpp"
#include "viewer/app/command_line.hpp"
#include "viewer/app/ending.hpp"
#include "viewer/app/script.hpp"
#include "viewer/app/stage.hpp"

namespace shardbook::app {

namespace {

// Draws until nothing will change by itself.
void settle(Desk& desk, Picture& picture) {
  for (int i = 0; i < 4; ++i) picture.frame(desk);
  while (!desk.idle()) frame_beside_work(desk, picture);
}

base::Status take_picture(const ViewRequest& request, Desk& desk, Picture& picture) {
  settle(desk, picture);
  desk.find_causes();
  settle(desk, picture);
  if (!request.panel.empty()) {
    desk.act({"panel", request.panel});
    settle(desk, picture);
  }
  const std::string problem = desk.problem();
  if (!problem.empty()) return base::Error{problem};
  return write_png(picture.pixels(), request.screenshot);
}

base::Status carry_out(const ViewRequest& request) {
  DeskOptions options;
  options.root = book::project_root();
  options.open = request.open;
  options.dark = request.theme == "dark";
  options.layout = request.layout;
  options.view = request.view;
  // Pictures and scripts are the same whatever the user did before; `cmd remember` tests that things are remembered.
  const bool without_window = !request.screenshot.empty() || !request.script.empty();
  options.remember = !without_window;

  std::string script;
  if (!request.script.empty()) {
    base::Result<std::string> text = book::read_text(request.script);
    if (!text) return text.as_error();
    script = text.value();
  }
  std::unique_ptr<Picture> picture;
  if (without_window) {
    base::Result<std::unique_ptr<Picture>> made = Picture::make(request.width, request.height, request.scale);
    if (!made) return made.as_error();
    picture = std::move(made).value();
  }
  Desk desk(options);
  if (!request.theme.empty() && desk.dark() != options.dark) desk.act({"theme", request.theme});
  if (!without_window) {
    if (!request.panel.empty()) desk.act({"panel", request.panel});
    return run_window(desk, request.scale);
  }
  if (!request.script.empty()) {
    base::Status done = run_script(script, request.script, desk, *picture);
    if (!done) return done;
  }
  return request.screenshot.empty() ? base::Status(base::Done{}) : take_picture(request, desk, *picture);
}

}  // namespace

int view(const ViewRequest& request, std::ostream& err) {
  const EndingGuard guard;
  try {
    const base::Status done = carry_out(request);
    if (done) return 0;
    err << "shardbook-viewer: " << done.error() << "\n";
  } catch (const base::Failure& failure) {
    err << "shardbook-viewer: " << failure.what() << "\n";
  }
  return ending_signal() == 0 ? 2 : 128 + ending_signal();
}

}  // namespace shardbook::app
