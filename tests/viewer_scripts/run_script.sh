#!/usr/bin/env bash
# Runs one script of the viewer in a fresh folder that holds copies of measured runs, so that nothing of the
# project or the user is written to.   run_script.sh VIEWER SCRIPT PROJECT
set -euo pipefail
viewer=$(realpath "$1") script=$(realpath "$2") project=$(realpath "$3")
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
captured=$project/experiments/captured
cp "$captured/gpt-1.3b-fsdp4.tar.gz" fsdp.tar.gz
cp "$captured/gpt-1.3b-fsdp4-no-prefetch.tar.gz" no-prefetch.tar.gz
cp "$captured/grammar-tutor-tp2-fsdp2.tar.gz" tutor.tar.gz
cp "$project"/tests/metrics/data/fsdp_rank?.json.gz .
# A run as a folder, and things that are no runs.
mkdir run && tar xzf tutor.tar.gz -C run --strip-components=2 --wildcards '*/run/*'
head -c 20000 run/rank0.json > truncated.json
: > empty.json
head -c 5000 /dev/urandom > binary.json
echo '{"traceEvents": 7}' > wrong_type.json
echo 'shardbook columns 999' > wrong_version.tlb
head -c 30000 fsdp.tar.gz > cut.tar.gz
# A viewer that has only some of its fonts beside it, where a script asks for that in a line
# "# fonts beside the viewer: FILE...".
if fonts=$(sed -n 's/^# fonts beside the viewer: *//p' "$script") && [ -n "$fonts" ]; then
  mkdir -p plain/fonts
  cp "$viewer" plain/
  for font in $fonts; do cp "$(dirname "$viewer")/fonts/$font" plain/fonts/; done
  viewer=$folder/plain/$(basename "$viewer")
fi
# A project of its own, with sources of another's and notes about them, where a script asks for it in a line
# "# in a project of its own". The commit is none that the lab pins, so these files are judged as they are.
if grep -q '^# in a project of its own' "$script"; then
  commit=$(printf 'a%.0s' {1..40}) own=$folder/own
  sources=$own/sources/NVIDIA+Megatron-LM/$commit/megatron/core/tensor_parallel
  mkdir -p "$sources" "$own/experiments/35-reading-notes"
  for part in engine labs notes solutions experiments/captured; do ln -s "$project/$part" "$own/$part"; done
  # The program that stands beside the viewer, in this project.
  printf '#!/bin/sh\nSHARDBOOK_ROOT=%s exec %s "$@"\n' "$own" "$(dirname "$viewer")/shardbook" > "$own/shardbook"
  chmod +x "$own/shardbook"
  for line in $(seq 1 300); do echo "def place_$line(): pass  # of layers"; done > "$sources/layers.py"
  echo "y = 1" > "$sources/mappings.py"
  echo "$commit" > "$own/experiments/35-reading-notes/megatron-sha.txt"
  printf '# A note\r\n\r\n### One choice\r\n\r\n`layers.py:L120-L124` `place_122` `nowhere` and `layers.py:L290-L310` `place_300`\r\n\r\n## Connect the dots\r\n\r\nThe tutor.\r\n' > "$own/experiments/35-reading-notes/megatron-tp-layers.md"
  project=$own
fi
export HOME=$folder XDG_CONFIG_HOME=$folder/config SHARDBOOK_ROOT=$project LP_NUM_THREADS=1
"$viewer" view --size 1280x800 --script "$script"
