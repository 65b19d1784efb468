#include "viewer/app/images.hpp"

#include <GL/gl.h>
#include <png.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "viewer/ui/page_view.hpp"

namespace shardbook::app {

namespace {

constexpr std::uint64_t most_pixels = 64'000'000;

std::map<std::string, std::optional<ui::Image>>& known() {
  static std::map<std::string, std::optional<ui::Image>> images;
  return images;
}

std::optional<ui::Image> read_image(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) return std::nullopt;
  if (std::uint64_t{image.width} * image.height > most_pixels) {
    png_image_free(&image);
    return std::nullopt;
  }
  image.format = PNG_FORMAT_RGBA;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) == 0) return std::nullopt;

  GLint before = 0;
  glGetIntegerv(GL_TEXTURE_BINDING_2D, &before);
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, static_cast<GLsizei>(image.width), static_cast<GLsizei>(image.height), 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels.data());
  glBindTexture(GL_TEXTURE_2D, static_cast<GLuint>(before));
  return ui::Image{reinterpret_cast<ImTextureID>(static_cast<std::uintptr_t>(texture)), static_cast<float>(image.width), static_cast<float>(image.height)};
}

}  // namespace

void show_images_of_pages() {
  known().clear();
  ui::set_image_loader([](const std::string& path) {
    const auto [found, is_new] = known().emplace(path, std::nullopt);
    if (is_new) found->second = read_image(path);
    return found->second;
  });
}

void forget_images() {
  for (const auto& [path, image] : known()) {
    if (!image) continue;
    const auto texture = static_cast<GLuint>(reinterpret_cast<std::uintptr_t>(image->texture));
    glDeleteTextures(1, &texture);
  }
  known().clear();
  ui::set_image_loader(nullptr);
}

}  // namespace shardbook::app
