#!/usr/bin/env bash
# What does a step gain when only the sums of tp cost nothing?
#
#   experiments/causes/only_tp.sh FOLDER cuda|host TURNS [RUN ...]       FOLDER is new; runs: tutor (the default), sums, both
#
# `--set network=ideal` is of all groups of ranks. Here the engine is built from a copy of this tree, in which the line that asks
# each group to move nothing asks tp's alone. Of sums and both, a turn is a run as it is and one without; printed are the median of
# the untraced steps next to the traced ones, and the traced ones', in ms, and what `why` says of the four traced steps as they are:
# the gain of its first cause, and of the sums of tp. Of the tutor, whose hosts' pace differs from run to run, a turn is one run, in
# which fifty steps with the sums and fifty without follow each other. Printed are medians of both, but for the first hundred steps
# and the first five of each fifty; then those of twenty traced steps of either kind, and what is said of the former.
# (On the host steps follow by tens, and twenty and five are left out.)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 3 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
folder=$1 device=$2 turns=$3
shift 3
mkdir "$folder"
folder=$(cd "$folder" && pwd)
declare -A options_of=(
  [tutor]="--model grammar-tutor --tp 2 --fsdp 2"
  [sums]="--model gpt-1.3b --tp 4 --fsdp 1 --sequences 8 --data synthetic"
  [both]="--model gpt-1.3b --tp 2 --fsdp 2 --sequences 16 --data synthetic")

# In this file of the copy, each line of that form becomes this one.
change() {
  grep -q "$2" "$folder/tree/$1" || { echo "$1 has another line now than the one that this script changes"; exit 1; }
  sed -i "s/$2/$3/" "$folder/tree/$1"
}
mkdir "$folder/tree"
(cd "$root" && tar -c --exclude=./build --exclude=./.git --exclude=".${folder#"$root"}" .) | tar -x -C "$folder/tree"
change engine/train/trainer.cpp 'for (const auto\* group : {&tp_group_, &fsdp_group_, &dp_group_, &near_group_}) {' 'for (const auto* group : {\&tp_group_}) {'
change engine/comm/comm.cpp 'lane.recorder().step() == 0' '(std::getenv("IN_TURN") ? lane.recorder().step() \/ std::atoi(std::getenv("IN_TURN")) % 2 : lane.recorder().step()) == 0'
change engine/comm/comm.cpp '^#include "engine\/comm\/comm.hpp"' '&\n#include <cstdlib>'
(cd "$folder/tree" && cmake --preset "$device" && cmake --build "build/$device" --parallel --target shardbook_main) > "$folder/build.log" 2>&1 || { tail "$folder/build.log"; exit 1; }
program=$folder/tree/build/$device/shardbook
export SHARDBOOK_ROOT=$folder/tree

results() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1] + "/run.json"))["results"]; print(*(f"{r[key] / 1e6:.3f}" if r.get(key) else "-" for key in ("near_traced_ns", "traced_step_ns")))' "$1"; }
# RUN FIRST NUMBER
said() {
  seq "$2" $(($2 + $3 - 1)) | xargs -P 16 -I{} sh -c '"$1" why "$2" --step {} --json > "$2/why-{}.json"' _ "$program" "$1"
  python3 - "$@" <<'P'
import json, sys
for step in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])):
    causes = [(cause["gain_ns"] / 1e6, cause["what"]) for cause in json.load(open(f"{sys.argv[1]}/why-{step}.json"))["causes"]]
    sums = [gain for gain, what in causes if "all-reduces of tp" in what]
    print(*(f"{gains[0]:.3f}" if gains else "-" for gains in ([gain for gain, _ in causes], sums)), end="  ")
P
}
# RUN FIRST_TRACED STEPS_IN_TURN: medians with and without, of untraced steps and of traced ones
in_turn() {
  python3 - "$@" <<'P'
import json, statistics, sys
folder, first, turn = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
done = json.load(open(folder + "/run.json"))["results"]["steps_done_ns"]   # of all steps, after the first one's end
took = {step: (done[step] - done[step - 1]) / 1e6 for step in range(1, len(done))}
traced = range(first, first + 2 * min(turn, 20))
def median(of, ideal): return statistics.median(took[step] for step in of if step // turn % 2 == ideal)
settled = [step for step in took if step not in traced and step >= 2 * turn and step % turn >= min(5, turn // 2)]
print(" and ".join(f"{median(of, 0):.3f}, without {median(of, 1):.3f}" for of in (settled, traced)), end="")
P
}
# What is asked of a run is of the steps that have their sums, so its network is told to be real.
real_network() {
  python3 -c '
import json, sys
run = json.load(open(sys.argv[1]))
run["config"].pop("set")
run["switches"]["network"] = "real"
json.dump(run, open(sys.argv[1], "w"), indent=1)' "$1/run.json"
}
options="--device $device --clock wall --warmup-steps 2 --progress 0" in_turn=10
[ "$device" = host ] || { options=${options/--clock wall /}; in_turn=50; }
for ((turn = 1; turn <= turns; ++turn)); do
  for run in "${@:-tutor}"; do
    to=$folder/$run-$turn
    if [ "$run" = tutor ]; then
      number=$((in_turn < 20 ? in_turn : 20)) steps=$((20 * in_turn))
      first=$((steps - in_turn - number))   # the last of one kind, and the first of the other
      # shellcheck disable=SC2086 # words
      IN_TURN=$in_turn "$program" train $options --steps $steps --trace-steps $first:$((first + 2 * number)) ${options_of[$run]} --set network=ideal --out "$to" > "$folder/train.log" 2>&1 || { tail "$folder/train.log"; exit 1; }
      real_network "$to"
      took=$(in_turn "$to" "$first" "$in_turn")
      told=$(said "$to" "$first" "$number")
      echo "$run, turn $turn: $took; said (first cause, sums of tp): $told"
      continue
    fi
    first=100 steps="--steps 104 --trace-steps 100:104"
    # shellcheck disable=SC2086 # words
    { "$program" train $options $steps ${options_of[$run]} --out "$to" && "$program" train $options $steps ${options_of[$run]} --set network=ideal --out "$to-ideal"; } > "$folder/train.log" 2>&1 || { tail "$folder/train.log"; exit 1; }
    took="$(results "$to"); without $(results "$to-ideal")"
    told=$(said "$to" "$first" 4)
    echo "$run, turn $turn: $took; said (first cause, sums of tp): $told"
  done
done
