#!/usr/bin/env bash
# All that needs two GPUs of one host, one after the other, for so many minutes; the same command goes on where it stopped.
#
#   experiments/two_gpus.sh FOLDER MINUTES [TASK ...]       tasks in this order, or all of them in theirs
#
# Question: of what the pages of experiments/ say of two GPUs, what does today's program say?
#
# Idea: a task is a command of one of these pages; its word is in FOLDER/TASK.log, and FOLDER/TASK.done keeps it from being made
# again. A task begins only where the time that it needs is left. What is timed has the GPUs for itself; what is not runs at once.
# PROGRAM is build/cuda/shardbook, which `build` makes with what tests need (CMake, nvcc, NCCL, GoogleTest).
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 2 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
end=$((SECONDS + 60 * $2))
shift 2
cd "$root" || exit 2
export SHARDBOOK_ROOT=$root OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1} PYTHONUNBUFFERED=1
program=$root/build/cuda/shardbook
export SHARDBOOK_PROGRAM=$program

left() { echo $((end - SECONDS)); }
minutes() { awk -v s="$(left)" -v keep="$1" 'BEGIN { printf "%.2f", (s - keep) / 60 }'; }

build() {
  cmake --preset cuda -DSHARDBOOK_TESTS=ON -DCMAKE_CUDA_ARCHITECTURES=90-real &&
    cmake --build build/cuda --parallel --target shardbook_main test_gpu_train test_gpu_nccl faulty_ranks
}
# Bits, barriers and names, which other work does not change: three at once
untimed() {
  local code=0 one
  {
    { ctest --test-dir build/cuda -R 'gpu\.(memcheck|synccheck|racecheck)_' -j 2 --output-on-failure; echo "code $?"; } > "$out/sanitizers.log" 2>&1 &
    { build/cuda/tests/gpu/test_gpu_train && build/cuda/tests/gpu/test_gpu_nccl; echo "code $?"; } > "$out/tests.log" 2>&1 &
    { python3 experiments/switches/same_bits.py --device cuda --at-once 2 --program "$program" --out "$out/same_bits.json"; echo "code $?"; } > "$out/bits.log" 2>&1 &
    wait
  }
  for one in sanitizers tests bits; do tail -n 1 "$out/$one.log" | grep -q '^code 0' || { echo "$one: $(tail -n 1 "$out/$one.log")"; code=1; }; done
  return $code
}
faults() {
  python3 experiments/faults/faults.py --each-collective --at-once 2 --timeout 3 --out "$out/faults_each.json" &&
    python3 experiments/faults/faults.py --only ours --timeout 3 --out "$out/faults.json"
}
faults_torch() { python3 experiments/faults/faults.py --only torch --timeout 3 --faults killed,stopped,missing,left_out,swapped --out "$out/faults_torch.json"; }
switches() { python3 experiments/switches/measure.py experiments/switches/h200x2.json --gpus 2 --turns 1 --trials --minutes "$(minutes 20)" --program "$program"; }
causes() { rm -rf "$out/causes"; python3 experiments/causes/causes.py "$out/causes" --turns 1 --minutes "$(minutes 30)" --program "$program"; }
bench() { "$program" bench --linked --vs torch --turns 1 --out "$out/bench-$$"; }
losses() { python3 experiments/losses/losses.py "$out/losses" --program "$program"; }
turning() { python3 experiments/turning/measure.py --turns 2 --only lab02; }
memory() { python3 experiments/memory/measure.py --program "$program"; }
soak() { python3 experiments/soak/soak.py --minutes 8.1 --device cuda --json "$out/soak.json"; }
saving() { python3 experiments/checkpoint/measure.py --folder "$out/checkpoint" --only once --steps 61 --dd-gb 17 -- --model gpt-1.3b --device cuda --tp 1 --fsdp 2 --sequences 128; }

# What a task needs at least, in seconds: begun with less it would be cut off. Those that go on take what is left.
needs() {
  case $1 in
    build) echo 60 ;; untimed) echo 330 ;; faults) echo 150 ;; faults_torch) echo 110 ;; switches) echo 60 ;; causes) echo 230 ;; bench) echo 420 ;;
    memory) echo 240 ;; losses) echo 280 ;; turning) echo 240 ;; soak) echo 515 ;; saving) echo 150 ;;
    *) return 1 ;;
  esac
}
failed=0
for task in build ${@:-untimed faults faults_torch causes switches bench memory losses turning saving soak}; do
  need=$(needs "$task") || { echo "two_gpus.sh knows no task $task"; exit 2; }
  [ ! -e "$out/$task.done" ] || { [ "$task" = build ] && [ ! -x "$program" ]; } || continue
  if [ "$(left)" -lt "$need" ]; then echo "$task: needs $need s, $(left) are left"; continue; fi
  began=$SECONDS
  "$task" > "$out/$task.log" 2>&1
  code=$?
  echo "$task: code $code, $((SECONDS - began)) s ($out/$task.log)"
  if [ $code = 0 ]; then touch "$out/$task.done"; else failed=1; [ "$task" != build ] || { tail -n 20 "$out/build.log"; exit 1; }; fi
done
exit $failed
