// Where no processor has an instruction for the sum that is known here: tables do it.
#include "engine/base/crc32c_forms.hpp"

namespace shardbook::base {

bool processor_sums_crc32c() { return false; }

std::uint32_t crc32c_by_processor(const unsigned char*, std::size_t, std::uint32_t rest) { return rest; }

}  // namespace shardbook::base
