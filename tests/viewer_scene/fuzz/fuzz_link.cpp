// libFuzzer target; build.sh builds it. Any bytes are a link or one sentence, and what is a link is read as it is written.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "viewer/scene/link.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardbook;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* page : {"", "notes/rooms/fsdp.md"}) {
    const base::Result<scene::Link> link = scene::parse_link(text, page);
    if (!link.ok()) continue;
    const base::Result<scene::Link> back = scene::parse_link(scene::link_text(link.value()));
    if (!back.ok() || !(back.value() == link.value())) std::abort();
  }
  return 0;
}
