#!/bin/sh
# Builds all fuzz targets with clang-16 and runs them one after the other, in equal shares of the time given.
#
#   tests/support/fuzz_all.sh MINUTES [FOLDER] [TARGET...]       # FOLDER: build/fuzz where none is given
#
# What is new is kept under FOLDER/new/TARGET, from run to run; what breaks something as FOLDER/new/TARGET-*, which is
# then said. A line a target says how often it ran. Exit code 1 where something broke. What is worth keeping goes into the
# target's corpus by hand, as found_*, where each build's tests run it again.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
minutes=${1:?how many minutes in all}
out=${2:-$root/build/fuzz}
shift; [ $# -eq 0 ] || shift
export CLANG=clang++-16
flags="-std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -I$root -DSHARDBOOK_BUILT_FROM=\"$root\""
cd "$root"

# Target and corpus, and what is built for it
targets="trace:timeline/fuzz/corpus/trace columns:timeline/fuzz/corpus/columns pack:timeline/fuzz/corpus/pack run_info:timeline/fuzz/corpus/run_info
record:program/fuzz/corpus sidecar:viewer_scene/fuzz/corpus/sidecar scene:viewer_scene/fuzz/corpus/scene link:viewer_scene/fuzz/corpus/link
markdown:viewer_page/fuzz/corpus/markdown diagram:viewer_page/fuzz/corpus/diagram text:viewer_page/fuzz/corpus/text
manifest:checkpoint/fuzz/corpus/manifest safetensors:checkpoint/fuzz/corpus/safetensors
config:config/fuzz/corpus profile:simulate/fuzz/corpus indexed:data/fuzz/corpus notes:reading/fuzz/corpus control:comm/fuzz/corpus"
wanted=${*:-$(for one in $targets; do echo "${one%%:*}"; done)}
asked() { for named in $wanted; do [ "$named" = "$1" ] && return 0; done; return 1; }

# build TARGET ROOM "sources without .cpp"
build() {
  asked "$1" || return 0
  mkdir -p "$out/$1.objects"
  objects=""
  for source in $3; do
    object=$out/$1.objects/$(echo "$source" | tr / _).o
    if [ ! "$object" -nt "$source.cpp" ] || [ -n "$(find engine -name '*.hpp' -newer "$object")" ]; then
      $CLANG $flags -fsanitize=fuzzer-no-link -c "$source.cpp" -o "$object"
    fi
    objects="$objects $object"
  done
  $CLANG $flags -fsanitize=fuzzer "tests/$2/fuzz/fuzz_$1.cpp" $objects -lpthread -o "$out/fuzz_$1"
}
all_of() { for source in "$@"; do [ -f "$source" ] && echo "${source%.cpp}"; done; }
build_room() { for part in $2; do asked "$part" && { "tests/$1/fuzz/build.sh" "$out"; return; }; done; return 0; }

mkdir -p "$out/new"
build_room timeline "trace columns pack run_info"
build_room program "record"
build_room viewer_scene "scene sidecar link"
build_room viewer_page "markdown diagram text"
build_room checkpoint "manifest safetensors"
build config config "$(all_of engine/base/*.cpp engine/config/*.cpp | grep -v no_)"
profiles=$out/profiles.cpp
build_profile() {
  # As engine/simulate/CMakeLists.txt makes it, without any profile compiled in
  printf '#include "engine/simulate/built_in.hpp"\nnamespace shardbook::simulate { const std::vector<BuiltIn>& built_in_profiles() { static const std::vector<BuiltIn> none; return none; } }\n' > "$profiles"
  build profile simulate "engine/base/base engine/base/json engine/base/printable engine/program/program engine/simulate/profile engine/simulate/profile_json engine/simulate/clock ${profiles%.cpp}"
}
build_profile
build indexed data "engine/base/base engine/base/json engine/base/printable engine/data/indexed_stream engine/data/mapped_file"
build notes reading "$(all_of engine/base/*.cpp engine/book/*.cpp engine/diagram/*.cpp engine/reading/*.cpp | grep -v no_)"
build control comm "engine/base/base engine/base/printable engine/program/program engine/program/recorder engine/program/beside engine/check/flight engine/check/ledger engine/check/words engine/comm/flight engine/comm/flight_log engine/world/wire engine/world/world engine/device/device engine/device/finite engine/device/crew engine/device/cuda/no_host_function engine/device/cuda/no_finite engine/device/cuda/no_copy"

# A share each
count=$(echo $wanted | wc -w)
seconds=$(awk "BEGIN { s = int($minutes * 60 / $count); print s < 1 ? 1 : s }")
broke=0
for one in $targets; do
  name=${one%%:*}
  asked "$name" || continue
  corpus=tests/${one#*:}
  mkdir -p "$out/new/$name"
  dict=""
  for file in "$(dirname "$corpus")/$name.dict" "$corpus/../$name.dict"; do [ -f "$file" ] && dict="-dict=$file"; done
  # Words would hide what is said of the last run
  if ! "$out/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 $dict \
      -artifact_prefix="$out/new/$name-" "$out/new/$name" "$corpus" > "$out/$name.log" 2>&1; then
    broke=1
    printf '%-12s BROKE: %s\n' "$name" "$(grep -a -m1 -E 'ERROR|does not hold|runtime error|libFuzzer' "$out/$name.log")"
    continue
  fi
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$name.log")
  slowest=$(sed -n 's/^stat::slowest_unit_time_sec: *//p' "$out/$name.log")
  covered=$(grep -a -o 'cov: [0-9]*' "$out/$name.log" | tail -1)
  memory=$(sed -n 's/^stat::peak_rss_mb: *//p' "$out/$name.log")
  printf '%-12s %4s s %10s executions, %s edges, slowest %s s, at most %s MB\n' "$name" "$seconds" "$executed" "${covered#cov: }" "$slowest" "$memory"
done
rm -rf /dev/shm/shardbook-fuzz-*
exit $broke
