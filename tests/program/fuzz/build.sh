#!/bin/sh
# Builds the fuzz target of records (rankN.program) with clang-16 into the folder given.
#
#   tests/program/fuzz/build.sh build/fuzz
#   build/fuzz/fuzz_record -max_total_time=600 -timeout=10 -rss_limit_mb=2048 -max_len=16384 NEW_CORPUS tests/program/fuzz/corpus
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
out=${1:?the folder for the target}
mkdir -p "$out"
clang++-16 -std=c++20 -O1 -g -fsanitize=address,undefined,fuzzer -fno-sanitize-recover=undefined -I"$root" \
    "$root"/tests/program/fuzz/fuzz_record.cpp "$root"/engine/program/*.cpp "$root"/engine/base/base.cpp -o "$out/fuzz_record"
