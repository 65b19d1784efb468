#!/usr/bin/env bash
# What does a step gain when only the sums of tp cost nothing? Runs as they are and with tp's network ideal, in turns.
#
#   experiments/causes/only_tp.sh FOLDER cuda|host TURNS [RUN ...]       FOLDER is new; runs: tutor (the default), sums, both
#
# `--set network=ideal` is of all groups of ranks. Here the engine is built from a copy of this tree, in which the line that asks
# each group to move nothing asks tp's alone. Prints of each run the median of the untraced steps next to the traced ones, and the
# traced ones', in ms, and of each run as it is what `why` says of the four traced steps: the gain of its first cause, and of the sums
# of tp.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 3 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
folder=$1 device=$2 turns=$3
shift 3
mkdir "$folder" && folder=$(cd "$folder" && pwd)
declare -A options_of=(
  [tutor]="--model grammar-tutor --tp 2 --fsdp 2"
  [sums]="--model gpt-1.3b --tp 4 --fsdp 1 --sequences 8 --data synthetic"
  [both]="--model gpt-1.3b --tp 2 --fsdp 2 --sequences 16 --data synthetic")

mkdir "$folder/tree"
(cd "$root" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$folder/tree"
all='for (const auto\* group : {&tp_group_, &fsdp_group_, &dp_group_, &near_group_}) {'
grep -q "$all" "$folder/tree/engine/train/trainer.cpp" || { echo "engine/train/trainer.cpp has another line now than the one that this script changes"; exit 1; }
sed -i "s/$all/for (const auto* group : {\&tp_group_}) {/" "$folder/tree/engine/train/trainer.cpp"
(cd "$folder/tree" && cmake --preset "$device" && cmake --build "build/$device" --parallel --target shardbook_main) > "$folder/build.log" 2>&1 || { tail "$folder/build.log"; exit 1; }
program=$folder/tree/build/$device/shardbook
export SHARDBOOK_ROOT=$folder/tree

results() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1] + "/run.json"))["results"]; print(*(f"{r[key] / 1e6:.3f}" if r.get(key) else "-" for key in ("near_traced_ns", "traced_step_ns")))' "$1"; }
said() {
  for step in $(seq "$2" $(($2 + 3))); do
    "$program" why "$1" --step "$step" --json | python3 -c '
import json, sys
causes = [(cause["gain_ns"] / 1e6, cause["what"]) for cause in json.load(sys.stdin)["causes"]]
sums = [gain for gain, what in causes if "all-reduces of tp" in what]
print(*(f"{gains[0]:.3f}" if gains else "-" for gains in ([gain for gain, _ in causes], sums)), end="  ")'
  done
}
options="--device $device --clock wall --warmup-steps 2 --progress 0"
declare -A first_of=([tutor]=300 [sums]=100 [both]=100)
[ "$device" = host ] && first_of[tutor]=50
[ "$device" = host ] || options=${options/--clock wall /}
for ((turn = 1; turn <= turns; ++turn)); do
  for run in "${@:-tutor}"; do
    first=${first_of[$run]}
    steps="--steps $((first + 4)) --trace-steps $first:$((first + 4))"
    # shellcheck disable=SC2086 # words
    { "$program" train $options $steps ${options_of[$run]} --out "$folder/$run-$turn"; "$program" train $options $steps ${options_of[$run]} --set network=ideal --out "$folder/$run-$turn-ideal"; } > "$folder/train.log" 2>&1 || { tail "$folder/train.log"; exit 1; }
    echo "$run, turn $turn: $(results "$folder/$run-$turn"); without $(results "$folder/$run-$turn-ideal"); said (first cause, sums of tp): $(said "$folder/$run-$turn" "$first")"
  done
done
