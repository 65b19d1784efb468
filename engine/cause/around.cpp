#include "engine/cause/around.hpp"

#include <algorithm>

namespace shardbook::cause {

using program::Command;
using program::CommandKind;

Calls::Calls(const program::Program& program) : program_(program), end_(static_cast<std::uint32_t>(program.commands.size())), kernels_{0} {
  for (std::uint32_t at = 0; at < end_; ++at) {
    const Command& command = program.commands[at];
    const bool computes = command.kind == CommandKind::op && program::class_of(program.ops[command.op].desc.kind) == program::OpClass::compute;
    kernels_.push_back(kernels_.back() + (computes ? 1 : 0));
    if (command.kind == CommandKind::record_event) records_[event_of(command)].push_back(at);
    if (command.kind == CommandKind::wait_event) waits_[event_of(command)].push_back(at);
  }
}

std::uint32_t Calls::record_before(std::uint32_t wait) const {
  const auto found = records_.find(event_of(program_.commands[wait]));
  if (found == records_.end()) return end_;
  const auto behind = std::lower_bound(found->second.begin(), found->second.end(), wait);
  return behind == found->second.begin() ? end_ : *std::prev(behind);
}

std::uint32_t Calls::wait_after(std::uint32_t record) const {
  const Command& made = program_.commands[record];
  const auto found = waits_.find(event_of(made));
  if (found == waits_.end()) return end_;
  auto wait = std::upper_bound(found->second.begin(), found->second.end(), record);
  while (wait != found->second.end() && program_.commands[*wait].stream == made.stream) ++wait;
  return wait == found->second.end() ? end_ : *wait;
}

Around Calls::around(std::uint32_t at) const {
  Around around;
  around.commands.insert(at);
  const program::StreamId stream = program_.ops[program_.commands[at].op].stream;
  // Waits before it, and the records that they await
  for (std::uint32_t wait = at; wait-- > 0;) {
    const Command& command = program_.commands[wait];
    if (command.kind != CommandKind::wait_event || command.stream != stream) break;
    around.commands.insert(wait);
    if (command.reason != program::WaitReason::data) continue;
    const std::uint32_t record = record_before(wait);
    if (record == end_) continue;
    around.commands.insert(record);
    around.kernels_since_made = kernels_between(record, wait);
  }
  // Records behind it, and the first wait for each
  for (std::uint32_t record = at + 1; record < end_; ++record) {
    const Command& command = program_.commands[record];
    if (command.kind != CommandKind::record_event || command.stream != stream) break;
    around.commands.insert(record);
    const std::uint32_t wait = wait_after(record);
    if (wait == end_) continue;
    around.commands.insert(wait);
    around.kernels_until_needed = kernels_between(record, wait);
  }
  return around;
}

}  // namespace shardbook::cause
