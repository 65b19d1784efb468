// device/host/memory_left: how much more memory could the system give this process without taking it from anybody?
//
// The least of what the host has and of what the limits of the process's control groups leave: a container's, a batch system's.
// There the kernel kills who takes more than its group may have, however much the host has.
//
// Source: Linux, Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.current, memory.stat), proc(5) (MemAvailable).
#pragma once

#include <cstdint>
#include <string>

namespace shardbook::device {

// Bytes. What says nothing limits nothing. Pages of files that the group has not used lately count as left: the kernel drops them.
// `proc` and `groups` are /proc and where control groups (version 2) are mounted.
std::uint64_t memory_left(const std::string& proc = "/proc", const std::string& groups = "/sys/fs/cgroup");

}  // namespace shardbook::device
