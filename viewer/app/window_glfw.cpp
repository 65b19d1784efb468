// app/window_glfw: a window on the user's screen; see stage.hpp.
//
// Frames are drawn while something happens: after each event for a moment, while a key or button is held, while the
// desk is at work. Else the program sleeps until the next event.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <GL/gl.h>

#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "engine/base/check.hpp"
#include "viewer/app/ending.hpp"
#include "viewer/app/images.hpp"
#include "viewer/app/look.hpp"
#include "viewer/app/stage.hpp"
#include "viewer/ui/imgui_version.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::app {

namespace {

std::string& last_problem() {
  static std::string sentence;
  return sentence;
}

base::Error no_window() {
  const bool named = std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
  return base::Error{base::text("no window can be opened here: ", named ? last_problem() : "there is no display (DISPLAY is not set)",
                                "; --screenshot OUT.png draws without one, `ssh -X` brings yours, `shardbook report RUN` makes a page of a run")};
}

// GLFW and ImGui, closed in order however the loop ends.
struct Session {
  GLFWwindow* window = nullptr;
  ImGuiContext* imgui = nullptr;
  bool drawing = false;
  ~Session() {
    if (drawing) {
      forget_images();
      ImGui_ImplOpenGL3_Shutdown();
      ImGui_ImplGlfw_Shutdown();
    }
    if (imgui != nullptr) ImGui::DestroyContext(imgui);
    if (window != nullptr) glfwDestroyWindow(window);
    glfwTerminate();
  }
};

// How large letters must be: the screen's scale, unless the system already enlarges all that is drawn.
float screen_scale_of(GLFWwindow* window) {
  float x = 1, y = 1;
  glfwGetWindowContentScale(window, &x, &y);
  int width = 0, height = 0, wide = 0, high = 0;
  glfwGetWindowSize(window, &width, &height);
  glfwGetFramebufferSize(window, &wide, &high);
  const float enlarged = width > 0 && wide > 0 ? static_cast<float>(wide) / static_cast<float>(width) : 1;
  return std::clamp(x / enlarged, 0.5F, 4.0F);
}

base::Status open_window(Session& session, Desk& desk) {
  glfwSetErrorCallback([](int, const char* words) { last_problem() = words; });
  if (glfwInit() == GLFW_FALSE) return no_window();
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);

  // As large as is good for a timeline, but within the screen.
  int x = 0, y = 0, width = 1600, height = 1000;
  if (GLFWmonitor* monitor = glfwGetPrimaryMonitor()) {
    glfwGetMonitorWorkarea(monitor, &x, &y, &width, &height);
    width = std::clamp(width * 9 / 10, 640, 1680);
    height = std::clamp(height * 9 / 10, 480, 1050);
  }
  session.window = glfwCreateWindow(width, height, desk.title().c_str(), nullptr, nullptr);
  if (session.window == nullptr) return no_window();
  glfwSetWindowSizeLimits(session.window, 480, 320, GLFW_DONT_CARE, GLFW_DONT_CARE);
  glfwMakeContextCurrent(session.window);
  glfwSwapInterval(1);

  // What is dropped on the window is opened.
  glfwSetWindowUserPointer(session.window, &desk);
  glfwSetDropCallback(session.window, [](GLFWwindow* window, int count, const char** paths) {
    auto* at = static_cast<Desk*>(glfwGetWindowUserPointer(window));
    std::string dropped;
    for (int i = 0; i < count; ++i) dropped += (dropped.empty() ? "" : "\n") + std::string(paths[i]);
    at->act({"open", dropped});
  });

  session.imgui = ImGui::CreateContext();
  prepare_imgui();
  if (!ImGui_ImplGlfw_InitForOpenGL(session.window, true) || !ImGui_ImplOpenGL3_Init("#version 330 core")) {
    return base::Error{"no window can be opened here: there is no OpenGL 3.3; --screenshot OUT.png draws without it"};
  }
  show_images_of_pages();
  session.drawing = true;
  return base::Done{};
}

Pixels pixels_of(GLFWwindow* window) {
  Pixels all;
  glfwGetFramebufferSize(window, &all.width, &all.height);
  const std::size_t row = std::size_t{3} * all.width;
  std::vector<std::uint8_t> upside_down(row * all.height);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, all.width, all.height, GL_RGB, GL_UNSIGNED_BYTE, upside_down.data());
  all.rgb.resize(upside_down.size());
  for (int y = 0; y < all.height; ++y) std::memcpy(&all.rgb[row * y], &upside_down[row * (all.height - 1 - y)], row);
  return all;
}

void draw_frame(Session& session, Desk& desk, Look& look, float scale) {
  desk.set_screen_scale(screen_scale_of(session.window) * scale);
  if (look.follow(desk.dark(), desk.scale())) {
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_CreateFontsTexture();
  }
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
  desk.draw();
  ImGui::Render();
  int width = 0, height = 0;
  glfwGetFramebufferSize(session.window, &width, &height);
  const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(ui::theme().ground);
  glViewport(0, 0, width, height);
  glClearColor(ground.x, ground.y, ground.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());

  // Read before the swap: what is behind it afterwards is the driver's affair.
  const std::string wanted = desk.picture_wanted();
  if (!wanted.empty() && width > 0 && height > 0) {
    const base::Status status = write_png(pixels_of(session.window), wanted);
    if (!status) std::cerr << "shardbook-viewer: " << status.error() << "\n";
  }
  glfwSwapBuffers(session.window);
}

bool anything_is_held() {
  const ImGuiIO& io = ImGui::GetIO();
  return ui::is_any_key_down() || std::any_of(std::begin(io.MouseDown), std::end(io.MouseDown), [](bool down) { return down; });
}

}  // namespace

base::Status run_window(Desk& desk, float scale) {
  Session session;
  base::Status opened = open_window(session, desk);
  if (!opened) return opened;
  Look look;
  std::string title;
  double awake_until = 0;
  constexpr double frame_time = 1.0 / 60, nap = 1.0, settle = 0.6;   // seconds; `settle` is longer than a hint waits
  while (glfwWindowShouldClose(session.window) == GLFW_FALSE && !desk.wants_to_quit() && ending_signal() == 0) {
    const bool awake = glfwGetTime() < awake_until || !desk.idle() || anything_is_held();
    const bool hidden = glfwGetWindowAttrib(session.window, GLFW_ICONIFIED) == GLFW_TRUE;
    const double before = glfwGetTime();
    if (awake && !hidden) {
      glfwPollEvents();
    } else {
      glfwWaitEventsTimeout(nap);
      // Back before the nap was over: something happened.
      if (glfwGetTime() - before < 0.9 * nap) awake_until = glfwGetTime() + settle;
    }
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    draw_frame(session, desk, look, scale);
    const ImVec2 now = ImGui::GetIO().MousePos;
    if (now.x != mouse.x || now.y != mouse.y || anything_is_held() || !desk.idle()) awake_until = glfwGetTime() + settle;
    // Where the swap does not wait for the screen, this does.
    const double left = frame_time - (glfwGetTime() - before);
    if (awake && left > 0.001) glfwWaitEventsTimeout(left);
    if (desk.title() != title) glfwSetWindowTitle(session.window, (title = desk.title()).c_str());
  }
  return base::Done{};
}

}  // namespace shardbook::app
