#!/bin/sh
# Builds the fuzz targets of what is read from files with clang-16 into the folder given. README.md says how to run them.
#
#   tests/timeline/fuzz/build.sh build/fuzz [TARGET]
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${1:?the folder for the targets}
mkdir -p "$out"
flags="-std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -I$root"
objects=""
for source in "$root"/engine/base/base.cpp "$root"/engine/base/json.cpp "$root"/engine/program/*.cpp "$root"/engine/timeline/*.cpp "$root"/engine/metrics/*.cpp \
    "$root"/tests/timeline/fuzz/one_core.cpp; do
  name=$(basename "$(dirname "$source")")_$(basename "$source" .cpp)
  case $name in timeline_no_gzip | timeline_cores) continue ;; esac
  if [ ! "$out/$name.o" -nt "$source" ] || [ -n "$(find "$root/engine" -name '*.hpp' -newer "$out/$name.o")" ]; then
    clang++-16 $flags -fsanitize=fuzzer-no-link -c "$source" -o "$out/$name.o"
  fi
  objects="$objects $out/$name.o"
done
for target in ${2:-trace columns pack run_info}; do
  clang++-16 $flags -fsanitize=fuzzer "$root/tests/timeline/fuzz/fuzz_$target.cpp" $objects -lz -lpthread -o "$out/fuzz_$target"
done
