#!/bin/sh
# Builds the fuzz targets of viewer/scene with clang-16 into the folder given. README.md says how to run them.
#
#   tests/viewer_scene/fuzz/build.sh build/fuzz [TARGET]
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${1:?the folder for the targets}
flags="-std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -I$root"
# The rooms below, and what they leave there as objects.
"$root/tests/timeline/fuzz/build.sh" "$out" columns
objects=$(ls "$out"/base_*.o "$out"/program_*.o "$out"/timeline_*.o "$out"/metrics_*.o "$out"/fuzz_*.o)
for source in "$root"/viewer/scene/*.cpp; do
  object=$out/scene_$(basename "$source" .cpp).o
  if [ ! "$object" -nt "$source" ] || [ -n "$(find "$root/engine" "$root/viewer/scene" -name '*.hpp' -newer "$object")" ]; then
    clang++-16 $flags -fsanitize=fuzzer-no-link -c "$source" -o "$object"
  fi
  objects="$objects $object"
done
for target in ${2:-scene sidecar link}; do
  clang++-16 $flags -fsanitize=fuzzer "$root/tests/viewer_scene/fuzz/fuzz_$target.cpp" $objects -lz -lpthread -o "$out/fuzz_$target"
done
