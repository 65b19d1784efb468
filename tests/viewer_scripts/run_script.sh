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
export HOME=$folder XDG_CONFIG_HOME=$folder/config SHARDBOOK_ROOT=$project LP_NUM_THREADS=1
"$viewer" view --size 1280x800 --script "$script"
