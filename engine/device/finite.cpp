#include "engine/device/finite.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/device/device.hpp"

namespace shardbook::device {

namespace host {

namespace {

template <class T>
bool all_finite(const void* data, std::int64_t elements) {
  const T* numbers = static_cast<const T*>(data);
  return std::all_of(numbers, numbers + elements, [](T number) { return std::isfinite(number); });
}

// Of eight exponent bits, all of them set.
bool all_finite_bf16(const void* data, std::int64_t elements) {
  const std::uint16_t* bits = static_cast<const std::uint16_t*>(data);
  return std::all_of(bits, bits + elements, [](std::uint16_t number) { return (number & 0x7f80) != 0x7f80; });
}

}  // namespace

void check_finite(const FiniteArgs& args) {
  bool finite = true;
  switch (args.dtype) {
    case base::DType::bf16: finite = all_finite_bf16(args.data, args.elements); break;
    case base::DType::f32: finite = all_finite<float>(args.data, args.elements); break;
    case base::DType::f64: finite = all_finite<double>(args.data, args.elements); break;
    case base::DType::i32: break;
  }
  if (!finite) *args.least = std::min(*args.least, args.ticket);
}

}  // namespace host

void Device::check_finite() {
  SHARDBOOK_CHECK(!sealed_, "numbers are to be checked from the first step on, or not at all");
  checks_finite_ = true;
  least_ticket_ = static_cast<std::uint64_t*>(pinned(sizeof *least_ticket_));
  if (least_ticket_ != nullptr) *least_ticket_ = no_ticket;
}

void Device::note_place(program::BufferId buffer, void* data, base::DType nominal) {
  if (places_.size() <= buffer) places_.resize(std::size_t{buffer} + 1);
  places_[buffer] = {data, nominal};
}

std::optional<Device::Numbers> Device::numbers_in(const program::BufferUse& use) const {
  if (use.buffer >= places_.size() || places_[use.buffer].nominal == base::DType::i32) return std::nullopt;
  return range_of(use);
}

std::optional<Device::Numbers> Device::range_of(const program::BufferUse& use) const {
  if (use.buffer >= places_.size()) return std::nullopt;
  const Place& place = places_[use.buffer];
  const base::Bytes nominal = base::size_of(place.nominal), stored = base::size_of(storage_.of(place.nominal));
  void* data = place.data == nullptr ? nullptr : static_cast<std::byte*>(place.data) + use.begin / nominal * stored;
  return Numbers{data, (use.end - use.begin) / nominal, storage_.of(place.nominal)};
}

void Device::look_at_inputs(Lane lane, const program::OpDesc& read) {
  std::vector<program::BufferUse> ranges;
  for (int use = 0; use < read.uses.size(); ++use) {
    if ((read.written_mask >> use & 1) == 0 && numbers_in(read.uses[use])) ranges.push_back(read.uses[use]);
  }
  // It is issued behind those that look
  const auto op = static_cast<program::OpIndex>(recorder_.ops_issued() + ranges.size());
  for (const program::BufferUse& range : ranges) look_at(lane, range, *numbers_in(range), Ticket{recorder_.step(), op, false}.number());
}

void Device::look_at_outputs(Lane lane, const program::OpDesc& written, program::OpIndex op) {
  for (int use = 0; use < written.uses.size(); ++use) {
    const program::BufferUse& range = written.uses[use];
    const std::optional<Numbers> numbers = (written.written_mask >> use & 1) != 0 ? numbers_in(range) : std::nullopt;
    if (numbers) look_at(lane, range, *numbers, Ticket{recorder_.step(), op, true}.number());
  }
}

void Device::look_at(Lane lane, const program::BufferUse& range, const Numbers& numbers, std::uint64_t ticket) {
  program::OpDesc desc("check_finite", program::OpKind::reduction, places_[range.buffer].nominal);
  desc.reads(range);
  launch(lane, desc, FiniteArgs{numbers.data, numbers.elements, numbers.stored, ticket, least_ticket_}, &host::check_finite, &cuda::check_finite);
}

std::optional<Ticket> Device::first_not_finite(std::int64_t step) const {
  if (least_ticket_ == nullptr) return std::nullopt;
  // The device may write it meanwhile, for a later step.
  const std::uint64_t number = *const_cast<const volatile std::uint64_t*>(least_ticket_);
  if (number == no_ticket || Ticket::of(number).step != step) return std::nullopt;
  return Ticket::of(number);
}

}  // namespace shardbook::device
