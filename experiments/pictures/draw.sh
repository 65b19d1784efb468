#!/usr/bin/env bash
# Draws the first screens that README.md lists, without a display.   draw.sh [FOLDER] [VIEWER]
# From the root of the project. FOLDER is build/pictures and VIEWER build/test/shardbook-viewer where none is named.
set -euo pipefail
out=${1:-build/pictures} viewer=$(realpath "${2:-build/test/shardbook-viewer}")
captured=experiments/captured
mkdir -p "$out"
out=$(realpath "$out")
export SHARDBOOK_ROOT=$PWD

draw() {      # NAME WHAT...
  local name=$1 size theme
  shift
  for size in 1280x800 2560x1440; do
    for theme in light dark; do
      "$viewer" view "$@" --size "$size" --theme "$theme" --screenshot "$out/$name-$size-$theme.png"
    done
  done
}

for run in gpt-1.3b-fsdp4 gpt-1.3b-fsdp4-no-prefetch gpt-1.3b-fsdp4-busy-neighbour gpt-1.3b-tp4 gpt-1.3b-tp2-fsdp2 grammar-tutor-tp2-fsdp2; do
  draw "$run" $captured/$run.tar.gz
done
draw compare $captured/gpt-1.3b-fsdp4.tar.gz $captured/gpt-1.3b-fsdp4-no-prefetch.tar.gz --panel compare
draw note $captured/gpt-1.3b-fsdp4.tar.gz --view note:04_fsdp --layout split
draw pytorch tests/metrics/data/fsdp_rank0.json.gz tests/metrics/data/fsdp_rank1.json.gz
