#!/bin/sh
# Builds the fuzz targets of the page with clang-16 (which knows std::source_location) into the folder given.
#
#   tests/viewer_page/fuzz/build.sh build/fuzz
#   build/fuzz/fuzz_markdown -max_total_time=300 -max_len=4096 NEW_CORPUS tests/viewer_page/fuzz/corpus/markdown
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${1:?the folder for the targets}
mkdir -p "$out"
flags="-std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -I$root"
objects=""
for source in "$root"/viewer/page/*.cpp "$root"/engine/diagram/*.cpp "$root"/engine/base/base.cpp "$root"/engine/base/json.cpp "$root"/engine/base/printable.cpp "$root"/tests/viewer_page/fuzz/no_graphviz.cpp; do
  name=$(basename "$source" .cpp)
  [ "$name" = graphviz ] && continue
  clang++-16 $flags -fsanitize=fuzzer-no-link -c "$source" -o "$out/$name.o"
  objects="$objects $out/$name.o"
done
for target in markdown diagram text; do
  clang++-16 $flags -fsanitize=fuzzer "$root/tests/viewer_page/fuzz/fuzz_$target.cpp" $objects -lmd4c -o "$out/fuzz_$target"
done
