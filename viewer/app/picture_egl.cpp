// app/picture_egl: a stage in memory; see stage.hpp.
//
// EGL without a surface (EGL_PLATFORM_SURFACELESS_MESA) gives an OpenGL context with no window system; frames go to a
// framebuffer object and are read back. Mesa's llvmpipe draws them on the CPU, so that the picture is the same
// whatever GPU there is, and a node's GPUs are left to who trains on them.
#include <EGL/egl.h>
#include <EGL/eglext.h>
#define GL_GLEXT_PROTOTYPES
#include <GL/gl.h>
#include <GL/glext.h>

#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <thread>

#include "engine/base/check.hpp"
#include "viewer/app/ending.hpp"
#include "viewer/app/images.hpp"
#include "viewer/app/look.hpp"
#include "viewer/app/stage.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::app {

namespace {

constexpr int largest_side = 16384;

// Where NVIDIA's EGL is listed beside Mesa's, it answers first, and its surfaceless platform draws on a GPU or, on a
// node whose GPUs are in other hands, not at all. The loader reads this variable once, at its first call. It is left
// alone where only Mesa is listed, and where the user has set it.
void prefer_mesa() {
  namespace fs = std::filesystem;
  if (std::getenv("__EGL_VENDOR_LIBRARY_FILENAMES") == nullptr && std::getenv("__EGL_VENDOR_LIBRARY_DIRS") == nullptr) {
    std::string mesa;
    bool others = false;
    for (const char* folder : {"/etc/glvnd/egl_vendor.d", "/usr/share/glvnd/egl_vendor.d"}) {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        const bool is_mesa = entry.path().filename().string().find("mesa") != std::string::npos;
        if (is_mesa && mesa.empty()) mesa = entry.path().string();
        others |= !is_mesa;
      }
    }
    if (others && !mesa.empty()) setenv("__EGL_VENDOR_LIBRARY_FILENAMES", mesa.c_str(), 0);
  }
  setenv("LIBGL_ALWAYS_SOFTWARE", "1", 0);
}

base::Error no_egl(const std::string& why) {
  return base::Error{base::text("no picture can be drawn without a display: ", why,
                                "; install Mesa's software renderer (on Debian: libegl1 libegl-mesa0 libgl1-mesa-dri)")};
}

// The display that all pictures of this program share; it is never closed.
base::Result<EGLDisplay> shared_display() {
  static EGLDisplay display = EGL_NO_DISPLAY;
  if (display != EGL_NO_DISPLAY) return display;
  prefer_mesa();
  const char* extensions = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
  if (extensions == nullptr || std::string_view(extensions).find("EGL_MESA_platform_surfaceless") == std::string_view::npos) {
    return no_egl("EGL has no surfaceless platform");
  }
  const auto get_display = reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(eglGetProcAddress("eglGetPlatformDisplayEXT"));
  if (get_display == nullptr) return no_egl("EGL is older than its platforms");
  EGLDisplay found = get_display(EGL_PLATFORM_SURFACELESS_MESA, nullptr, nullptr);
  if (found == EGL_NO_DISPLAY || eglInitialize(found, nullptr, nullptr) == EGL_FALSE) return no_egl("EGL's surfaceless platform does not start");
  display = found;
  return display;
}

// Owns the context, the framebuffer and the ImGui of one picture. One picture is current at a time.
class EglPicture : public Picture {
 public:
  ~EglPicture() override {
    if (imgui_ != nullptr) {
      make_current();
      forget_images();
      ImGui_ImplOpenGL3_Shutdown();
      ImGui::DestroyContext(imgui_);
    }
    if (framebuffer_ != 0) glDeleteFramebuffers(1, &framebuffer_);
    if (texture_ != 0) glDeleteTextures(1, &texture_);
    if (context_ != EGL_NO_CONTEXT) {
      eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
      eglDestroyContext(display_, context_);
    }
  }

  base::Status start(int width, int height, float screen_scale) {
    base::Result<EGLDisplay> display = shared_display();
    if (!display) return display.as_error();
    display_ = display.value();
    if (eglBindAPI(EGL_OPENGL_API) == EGL_FALSE) return no_egl("this EGL has no OpenGL");
    const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 3,
                             EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE};
    context_ = eglCreateContext(display_, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, wanted);
    if (context_ == EGL_NO_CONTEXT) return no_egl("there is no OpenGL 3.3");
    if (eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_) == EGL_FALSE) return no_egl("OpenGL cannot draw without a surface");

    imgui_ = ImGui::CreateContext();
    ImGui::SetCurrentContext(imgui_);
    prepare_imgui();
    // A clipboard of its own: there is no other program to copy to.
    ImGui::GetIO().BackendPlatformName = "picture";
    ImGui::GetIO().MousePos = {-1e6F, -1e6F};
    if (!ImGui_ImplOpenGL3_Init("#version 330 core")) return no_egl("ImGui finds no OpenGL functions");
    show_images_of_pages();
    resize(width, height, screen_scale);
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) return no_egl(base::text("a picture of ", width, " x ", height, " cannot be made"));
    return base::Done{};
  }

  void resize(int width, int height, float screen_scale) override {
    make_current();
    width_ = std::clamp(width, 1, largest_side);
    height_ = std::clamp(height, 1, largest_side);
    screen_scale_ = screen_scale;
    if (texture_ == 0) glGenTextures(1, &texture_);
    glBindTexture(GL_TEXTURE_2D, texture_);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width_, height_, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    if (framebuffer_ == 0) glGenFramebuffers(1, &framebuffer_);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture_, 0);
  }

  float screen_scale() const override { return screen_scale_; }

  void frame_of(bool dark, float scale, const std::function<void()>& draw) override {
    make_current();
    if (look_.follow(dark, scale)) {
      ImGui_ImplOpenGL3_DestroyFontsTexture();
      ImGui_ImplOpenGL3_CreateFontsTexture();
    }
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(width_), static_cast<float>(height_)};
    io.DisplayFramebufferScale = {1, 1};
    io.DeltaTime = 1.0F / 60;
    ImGui_ImplOpenGL3_NewFrame();
    ImGui::NewFrame();
    draw();
    ImGui::Render();
    ground_ = ImGui::ColorConvertU32ToFloat4(ui::theme().ground);
    is_painted_ = false;
  }

  Pixels pixels() override {
    make_current();
    paint();
    Pixels all;
    all.width = width_;
    all.height = height_;
    const std::size_t row = std::size_t{3} * width_;
    std::vector<std::uint8_t> upside_down(row * height_);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadPixels(0, 0, width_, height_, GL_RGB, GL_UNSIGNED_BYTE, upside_down.data());
    all.rgb.resize(upside_down.size());
    for (int y = 0; y < height_; ++y) std::memcpy(&all.rgb[row * y], &upside_down[row * (height_ - 1 - y)], row);
    return all;
  }

 private:
  // The processor paints, which takes it most of a frame; nobody sees the frames before the one that is asked for.
  void paint() {
    if (is_painted_ || ImGui::GetDrawData() == nullptr) return;
    is_painted_ = true;
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
    glViewport(0, 0, width_, height_);
    glClearColor(ground_.x, ground_.y, ground_.z, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  }
  void make_current() {
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_);
    ImGui::SetCurrentContext(imgui_);
  }

  EGLDisplay display_ = EGL_NO_DISPLAY;
  EGLContext context_ = EGL_NO_CONTEXT;
  ImGuiContext* imgui_ = nullptr;
  GLuint framebuffer_ = 0, texture_ = 0;
  int width_ = 0, height_ = 0;
  float screen_scale_ = 1;
  Look look_;
  ImVec4 ground_;
  bool is_painted_ = true;
};

}  // namespace

base::Result<std::unique_ptr<Picture>> Picture::make(int width, int height, float screen_scale) {
  auto picture = std::make_unique<EglPicture>();
  base::Status status = picture->start(width, height, screen_scale);
  if (!status) return status.as_error();
  return std::unique_ptr<Picture>(std::move(picture));
}

void Picture::frame(Desk& desk) {
  if (ending_signal() != 0) throw base::Failure("ended by a signal before everything was drawn");
  desk.set_screen_scale(screen_scale());
  frame_of(desk.dark(), desk.scale(), [&] { desk.draw(); });
  const std::string wanted = desk.picture_wanted();
  if (wanted.empty()) return;
  const base::Status status = write_png(pixels(), wanted);
  if (!status) std::cerr << "shardbook-viewer: " << status.error() << "\n";
}

void frame_beside_work(Desk& desk, Picture& picture) {
  const auto begin = std::chrono::steady_clock::now();
  picture.frame(desk);
  if (!desk.at_work()) return;
  const auto took = std::chrono::steady_clock::now() - begin;
  std::this_thread::sleep_for(std::clamp<std::chrono::steady_clock::duration>(3 * took, std::chrono::milliseconds(10), std::chrono::milliseconds(250)));
}

}  // namespace shardbook::app
