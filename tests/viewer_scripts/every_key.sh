#!/usr/bin/env bash
# Each key of the table (viewer/ui/keys.cpp) is pressed by keys.script.   every_key.sh PROJECT
set -euo pipefail
project=$1 missing=0
while IFS= read -r keys; do
  [ -n "$keys" ] || continue
  while IFS= read -r key; do
    case $key in '1..9') key=1 ;; 'F F') key=F ;; esac
    grep -qxF "key \"$key\"" "$project/tests/viewer_scripts/keys.script" || { echo "keys.script does not press $key"; missing=1; }
  done <<< "${keys// or /$'\n'}"
done < <(sed -n 's/^ *{"[a-z_.]*", "\([^"]*\)", ".*/\1/p' "$project/viewer/ui/keys.cpp")
exit $missing
