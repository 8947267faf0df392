#!/bin/bash
# roost voxels --export: files that tell of the same solid, read by another program; and files that cannot be written.
# Usage: exports_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
reader=$programs/read_voxels.py

# exported GRID ARGUMENT...
exported() {
  local grid=$1
  shift
  rm -rf a.* slices
  local files=(--export a.ply --export a.points.ply --export a.binvox --export a.vox --export slices/)
  ((vdb == 0)) || files+=(--export a.vdb)
  "$roost" voxels "$@" --grid "$grid" --place host --no-picture --reps 1 --format json "${files[@]}" >json 2>stderr || fail "$*: $(cat stderr)"
  local volume
  volume=$(/usr/bin/python3 -c "import json; print(json.load(open('json'))['result']['volume_voxels'])")
  /usr/bin/python3 "$reader" "$grid" "$volume" . >told 2>&1 || fail "$*: $(cat told)"
}

vdb=1
"$roost" voxels box --grid 4 --place host --no-picture --export a.vdb >stdout 2>stderr || vdb=0
((vdb == 1)) || grep -q "without OpenVDB" stderr || fail "a.vdb: $(cat stderr)"
if /usr/bin/python3 -c 'import numpy' 2>numpy; then
  exported 270 sphere box --op difference --place-b "scale 0.6 move 0.4 0.3 0.3 rotate 1 1 0 30" # two models along an axis
  exported 20 torus sphere --op xor --place-b "move 0.3 0 0.1"
  exported 1 box
  exported 5 box box --op difference
else
  echo "python3-numpy is not there: the files are not read"
fi

# Names and places that cannot be.
for bad in a.off a noending .points; do refused "ends in" voxels box --grid 4 --place host --export "$bad"; done
refused "no sides" voxels box sphere --op surfaces --grid 4 --place host --export a.ply
touch file
for bad in file/a.ply file/a.vox file/slices/ nowhere/a.binvox; do
  "$roost" voxels box --grid 4 --place host --no-picture --export "$bad" >stdout 2>stderr && fail "$bad was written"
  [[ $(wc -l <stderr) -eq 1 ]] && grep -q "^roost: $bad" stderr || fail "$bad: $(cat stderr)"
done
# No half of a file where there is no room.
(trap '' XFSZ && ulimit -f 2000 && "$roost" voxels sphere --grid 200 --reps 1 --place host --no-picture --export full.ply >stdout 2>stderr) &&
  fail "a file over the limit was written"
grep -q "^roost: full.ply: cannot be written (" stderr || fail "a file over the limit: $(cat stderr)"
[[ $(echo full.ply*) == "full.ply*" ]] || fail "half of a file was left: $(echo full.ply*)"

finish
