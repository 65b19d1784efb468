#!/usr/bin/env bash
# A viewer that is told to end, by Ctrl-C or by a terminal that closes, removes what it unpacked.
#   ended_by_a_signal.sh VIEWER PROJECT
set -euo pipefail
viewer=$(realpath "$1") project=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$project/experiments/captured/grammar-tutor-tp2-fsdp2.tar.gz" "$folder/run.tar.gz"
printf 'open %s\nwait 100000000\n' "$folder/run.tar.gz" > "$folder/long.script"
export HOME=$folder XDG_CONFIG_HOME=$folder/config TMPDIR=$folder/temporary SHARDBOOK_ROOT=$project LP_NUM_THREADS=1

for signal in INT TERM HUP; do
  mkdir -p "$TMPDIR"
  # In a shell of its own: a background command of a script would be born deaf to INT.
  bash -mc 'exec "$@"' - "$viewer" view --size 640x480 --script "$folder/long.script" 2> "$folder/said" & pid=$!
  for _ in $(seq 600); do [ -n "$(ls -A "$TMPDIR")" ] && break; sleep 0.05; done
  [ -n "$(ls -A "$TMPDIR")" ] || { echo "nothing was unpacked:"; cat "$folder/said"; exit 1; }
  kill -s $signal $pid
  code=0; wait $pid || code=$?
  [ "$code" -eq $((128 + $(kill -l $signal))) ] || { echo "$signal: exit code $code"; cat "$folder/said"; exit 1; }
  [ -z "$(ls -A "$TMPDIR")" ] || { echo "$signal left behind:"; ls "$TMPDIR"; exit 1; }
done
