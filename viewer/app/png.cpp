// app/png: pixels to a file; see stage.hpp.
#include <png.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/base/check.hpp"
#include "viewer/app/stage.hpp"

namespace shardbook::app {

base::Status write_png(const Pixels& pixels, const std::string& path) {
  SHARDBOOK_CHECK(pixels.rgb.size() == std::size_t{3} * pixels.width * pixels.height, "a picture of ", pixels.width, " x ", pixels.height,
                  " has ", pixels.rgb.size(), " bytes");
  // In memory first: its size is known only then.
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(pixels.width);
  image.height = static_cast<png_uint_32>(pixels.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.rgb.data(), 0, nullptr) == 0) {
    return base::Error{base::text("the picture ", path, " cannot be made: ", image.message)};
  }
  bytes.resize(size);

  // Beside it, then renamed: nobody ever sees half a picture.
  const std::string beside = path + ".tmp";
  errno = 0;
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code error;
  if (!file) {
    const std::string why = errno != 0 ? std::strerror(errno) : "it cannot be opened";
    std::filesystem::remove(beside, error);
    return base::Error{base::text("the picture ", path, " cannot be written: ", why)};
  }
  std::filesystem::rename(beside, path, error);
  if (error) {
    const std::string why = error.message();
    std::filesystem::remove(beside, error);
    return base::Error{base::text("the picture ", path, " cannot be written: ", why)};
  }
  return base::Done{};
}

}  // namespace shardbook::app
