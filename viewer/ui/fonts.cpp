// ui/fonts: the atlas; see fonts.hpp.
#include "viewer/ui/fonts.hpp"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "engine/base/check.hpp"

namespace shardbook::ui {

using page::FontKind;

namespace {

constexpr float body_size = 15;
// Sans Mono looks a little larger than Sans at one size: its letters are wide.
constexpr float mono_size = 14.5F;

// Latin with its extensions, modifier letters (ʳ) and marks set over others (x̂), Greek, phonetic superscripts (ᵀ), punctuation, super- and
// subscripts, currency, letterlike signs (ℓ ℝ), arrows, mathematics, technical signs, box drawing, blocks, shapes,
// a few symbols and dingbats (✓ ✗), long arrows, small mathematical signs. Not the replacement sign: ImGui would
// draw it for what lies beyond 16 bits, where the box is wanted.
constexpr std::array<ImWchar, 41> ranges = {
    0x20, 0x17F, 0x2B0, 0x36F, 0x370, 0x3FF, 0x1D00, 0x1DBF, 0x2010, 0x205E, 0x2070, 0x209F, 0x20AC, 0x20AC, 0x2100, 0x214F,
    0x2150, 0x215F, 0x2190, 0x21FF, 0x2200, 0x22FF, 0x2300, 0x23FF, 0x2500, 0x257F, 0x2580, 0x259F, 0x25A0, 0x25FF,
    0x2600, 0x266F, 0x2713, 0x2718, 0x27C0, 0x27FF, 0x2A00, 0x2A0F, 0x2A7D, 0x2A7E, 0};

struct Face {
  const char* file;
  float size;          // at scale 1
};
enum FaceIndex { body_face, bold_face, mono_face, heading1_face, heading2_face, heading3_face, small_face, face_count };
constexpr std::array<Face, face_count> faces = {{{"DejaVuSans.ttf", body_size},
                                                 {"DejaVuSans-Bold.ttf", body_size},
                                                 {"DejaVuSansMono.ttf", mono_size},
                                                 {"DejaVuSans-Bold.ttf", 1.6F * body_size},
                                                 {"DejaVuSans-Bold.ttf", 1.35F * body_size},
                                                 {"DejaVuSans-Bold.ttf", 1.15F * body_size},
                                                 {"DejaVuSans.ttf", 0.85F * body_size}}};

FaceIndex face_of(FontKind kind) {
  switch (kind) {
    case FontKind::body:
    case FontKind::italic: return body_face;
    case FontKind::bold:
    case FontKind::bold_italic: return bold_face;
    case FontKind::mono: return mono_face;
    case FontKind::heading1: return heading1_face;
    case FontKind::heading2: return heading2_face;
    case FontKind::heading3: return heading3_face;
    case FontKind::small: return small_face;
  }
  return body_face;
}

std::array<ImFont*, face_count>& built() {
  static std::array<ImFont*, face_count> fonts{};
  return fonts;
}

std::string& last_problem() {
  static std::string sentence;
  return sentence;
}

// Where the files are: beside the program, or where this build put them.
std::string folder_of_fonts() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / "fonts";
  if (!error && fs::exists(beside / faces[body_face].file, error)) return beside.string();
  return SHARDBOOK_FONT_FOLDER;
}

// The bytes of a font file, read once and kept, as the atlas points to them; empty if it is no font.
std::string& bytes_of(const std::filesystem::path& path) {
  static std::map<std::string, std::string> kept;
  std::string& bytes = kept[path.string()];
  if (bytes.empty()) {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    const std::string_view head = std::string_view(bytes).substr(0, 4);
    if (head != std::string_view("\0\1\0\0", 4) && head != "OTTO") bytes.clear();
  }
  return bytes;
}

unsigned next_code_point(const char*& at, const char* end) {
  unsigned code = 0;
  const int bytes = ImTextCharFromUtf8(&code, at, end);
  at += std::max(bytes, 1);
  return code;
}

// Widths as ImGui will draw them: sums of advances, without kerning.
class AtlasMeasure : public page::Measure {
 public:
  float width(std::string_view utf8, FontKind kind) const override {
    const ImFont* face = font(kind);
    if (face == nullptr) return 0;
    float sum = 0;
    const char* end = utf8.data() + utf8.size();
    for (const char* at = utf8.data(); at < end;) {
      const unsigned code = static_cast<unsigned char>(*at) < 0x80 ? static_cast<unsigned char>(*at++) : next_code_point(at, end);
      if (code == '\n' || code == '\r') continue;
      sum += code <= IM_UNICODE_CODEPOINT_MAX ? face->GetCharAdvance(static_cast<ImWchar>(code)) : face->FallbackAdvanceX;
    }
    return sum;
  }
  float line_height(FontKind kind) const override {
    const ImFont* face = font(kind);
    return face == nullptr ? 0 : std::round(face->FontSize * (kind == FontKind::mono ? 1.38F : 1.45F));
  }
};

// The atlas without files: one font for everything. `why`: a sentence.
base::Error use_own_font(ImFontAtlas& atlas, float scale, std::string why) {
  atlas.Clear();
  ImFontConfig config;
  config.SizePixels = std::round(13 * scale);
  ImFont* plain = atlas.AddFontDefault(&config);
  built().fill(plain);
  atlas.Build();
  // It has Latin only. What is cut off must not look like a question, nor an arrow.
  if (plain->FindGlyphNoFallback(plain->EllipsisChar) != nullptr) plain->AddRemapChar(0x2026, plain->EllipsisChar);
  plain->AddRemapChar(0x2192, '>');
  plain->AddRemapChar(0x2190, '<');
  last_problem() = why;
  return base::Error{std::move(why)};
}

}  // namespace

base::Status build_fonts(float scale, const std::string& folder) {
  namespace fs = std::filesystem;
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  const fs::path from = folder.empty() ? folder_of_fonts() : folder;

  // All files first: half an atlas helps nobody.
  for (const Face& face : faces) {
    const fs::path path = from / face.file;
    if (!bytes_of(path).empty()) continue;
    return use_own_font(atlas, scale, base::text("letters are plain: install fonts-dejavu-core, then ./shardbook build; ", path.string(),
                                                 " is missing or no font"));
  }

  // A face each; signs that it lacks come from Sans.
  atlas.Clear();
  atlas.TexDesiredWidth = 4096;
  atlas.Flags |= ImFontAtlasFlags_NoPowerOfTwoHeight;
  const auto add = [&](const char* file, float size, bool merge) {
    std::string& bytes = bytes_of(from / file);
    ImFontConfig config;
    config.OversampleH = 2;
    config.OversampleV = 1;
    config.MergeMode = merge;
    config.FontDataOwnedByAtlas = false;
    return atlas.AddFontFromMemoryTTF(bytes.data(), static_cast<int>(bytes.size()), size, &config, ranges.data());
  };
  for (int i = 0; i < face_count; ++i) {
    const float size = std::round(faces[i].size * scale * 2) / 2;
    built()[i] = add(faces[i].file, size, false);
    if (faces[i].file != std::string_view(faces[body_face].file)) add(faces[body_face].file, size, true);
  }
  if (!atlas.Build()) {
    return use_own_font(atlas, scale, base::text("letters are plain: install fonts-dejavu-core again; the fonts in ", from.string(), " cannot be drawn"));
  }

  // An empty box, not a question mark, for what is missing.
  for (ImFont* font : built()) {
    font->FallbackChar = 0x25A1;
    font->FallbackGlyph = nullptr;
    font->BuildLookupTable();
  }
  last_problem().clear();
  return base::Done{};
}

const std::string& font_problem() { return last_problem(); }

ImFont* font(FontKind kind) { return built()[face_of(kind)]; }

bool has_glyph(unsigned code_point) {
  if (code_point > IM_UNICODE_CODEPOINT_MAX) return false;
  for (const ImFont* face : built()) {
    if (face == nullptr || face->FindGlyphNoFallback(static_cast<ImWchar>(code_point)) == nullptr) return false;
  }
  return true;
}

float draw_text(ImDrawList* list, FontKind kind, ImVec2 at, ImU32 colour, std::string_view utf8) {
  ImFont* face = font(kind);
  if (face == nullptr || utf8.empty()) return 0;
  const int before = list->VtxBuffer.Size;
  at = {std::floor(at.x), std::floor(at.y)};
  list->AddText(face, face->FontSize, at, colour, utf8.data(), utf8.data() + utf8.size());

  // Leaning: each corner moves right by a fifth of its height above the baseline (DejaVu's oblique has 11 degrees).
  if (kind == FontKind::italic || kind == FontKind::bold_italic) {
    const float baseline = at.y + face->Ascent;
    for (int i = before; i < list->VtxBuffer.Size; ++i) {
      ImVec2& corner = list->VtxBuffer[i].pos;
      corner.x += 0.194F * (baseline - corner.y);
    }
  }
  return measure().width(utf8, kind);
}

const page::Measure& measure() {
  static const AtlasMeasure one;
  return one;
}

}  // namespace shardbook::ui
