#!/bin/sh
# Builds the fuzz targets of manifests and files of safetensors with clang (14 or newer) into the folder given.
#
#   tests/checkpoint/fuzz/build.sh build/fuzz
#   mkdir -p build/fuzz/new
#   build/fuzz/fuzz_manifest -max_total_time=600 -timeout=10 -rss_limit_mb=2048 -max_len=16384 build/fuzz/new tests/checkpoint/fuzz/corpus/manifest
#
# The corpus is small files by corpus.py; found_* are inputs that the fuzzers made.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${1:?the folder for the targets}
mkdir -p "$out"
compiler=${CLANG:-clang++}
flags="-std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -I$root"
objects=""
for source in base/base base/json base/crc32c base/no_crc32c_x86 base/printable base/sha256 shard/shard checkpoint/boxes checkpoint/files checkpoint/manifest checkpoint/manifest_read checkpoint/safetensors; do
  object=$out/$(echo "$source" | tr / _).o
  "$compiler" $flags -fsanitize=fuzzer-no-link -c "$root/engine/$source.cpp" -o "$object"
  objects="$objects $object"
done
for target in manifest safetensors; do
  "$compiler" $flags -fsanitize=fuzzer "$root/tests/checkpoint/fuzz/fuzz_$target.cpp" $objects -o "$out/fuzz_$target"
done
