#!/bin/bash
# roost voxels: bad input gets one line on stderr and a non-zero exit, good input counts, times and pictures.
# Usage: voxels_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

# refused_mesh WORDS ARGUMENT...: roost voxels refuses the arguments, and leaves nothing behind.
refused_mesh() {
  local words=$1
  shift
  rm -rf out
  refused "^roost: .*$words" voxels "$@" --out out
  [[ ! -e out ]] || fail "voxels $*: left $(ls out)"
}

# The file is wrong.
refused_mesh "no such file" missing.obj
refused_mesh "folder" .
: >empty.obj
refused_mesh "is empty" empty.obj
echo "not a mesh" >text.txt
refused_mesh "cannot be read as a mesh" text.txt
head -c 2000 /dev/urandom >random.3ds
refused_mesh "random.3ds" random.3ds
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\n' >points.obj
refused_mesh "no triangles" points.obj
printf 'v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n' >nan.obj
refused_mesh "(1, nan, 0).*not finite" nan.obj
printf 'v 0 0 0\nv 1 inf 0\nv 0 1 0\nf 1 2 3\n' >inf.obj
refused_mesh "(1, inf, 0).*not finite" inf.obj
head -c 300 "$data/cube_strips.ply" >cut.ply
refused_mesh "cut short" cut.ply
head -c 60 "$data/cube_strips.ply" >header.ply
refused_mesh "header" header.ply

# What is asked for is wrong.
refused_mesh "grid of 0 " "$data/cube.obj" --grid 0
refused_mesh "grid of 1025 " "$data/cube.obj" --grid 1025
refused_mesh "grid of 1099511627776 " "$data/cube.obj" --grid 1099511627776
nvidia-smi -L >nvidia 2>&1 || refused_mesh "" "$data/cube.obj" --place cuda
refused_mesh "turn of nan" "$data/cube.obj" --turn nan
touch file
"$roost" voxels "$data/cube.obj" --grid 8 --out file/out >stdout 2>stderr && fail "--out below a file was taken"
[[ $(wc -l <stderr) -eq 1 ]] || fail "--out below a file: not one line: $(cat stderr)"
for bad in "--grid -5" "--grid x" "--reps 0" "--threads -1" "--up w" "--format xml"; do
  # shellcheck disable=SC2086
  "$roost" voxels "$data/cube.obj" $bad --out out >stdout 2>stderr && fail "$bad was taken"
done

# is_png FILE
is_png() {
  [[ $(head -c 8 "$1" 2>/dev/null | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "$1 is no PNG"
}

# Cubes from faces and from strips have the same 5768 voxels: 6 * 32^2 - 12 * 32 + 8. One picture is enough.
for mesh in "cube_strips.ply --no-picture" cube.obj; do
  # shellcheck disable=SC2086
  "$roost" voxels "$data"/$mesh --grid 32 --place host --reps 1 --out out >stdout 2>stderr || fail "$mesh: $(cat stderr)"
  [[ ! -s stderr ]] || fail "$mesh: stderr has $(cat stderr)"
  grep -q "12 triangles touch 5768 voxels" stdout || fail "$mesh: wrong count: $(cat stdout)"
  for table in frozen_map sorted_map std_unordered_map; do
    grep -q " 5768 *$table .*ok$" stdout || fail "$mesh: no right answers of $table: $(cat stdout)"
  done
done
is_png out/voxels.png

# Small grids; one voxel leaves no empty one to ask for.
for grid in 1 "2 --no-picture" "33 --no-picture"; do
  # shellcheck disable=SC2086
  "$roost" voxels "$data/tetrahedron.stl" --grid $grid --place host --threads 1 --reps 1 --out out --up=-z >stdout 2>stderr ||
    fail "grid $grid: $(cat stderr)"
  [[ $(grep -c "ok$" stdout) -eq 3 ]] || fail "grid $grid: $(cat stdout)"
done

# A sweep as CSV: 4 grids, 3 tables, 3 operations; the same in the file; a plot where matplotlib is.
rm -rf out
"$roost" voxels "$data/cube.obj" --sweep --grid 130 --place host --reps 1 --format csv --out out >stdout 2>stderr || fail "sweep: $(cat stderr)"
[[ $(grep -c ',ok,' stdout) -eq 36 && $(wc -l <stdout) -eq 37 ]] || fail "sweep: $(cat stdout)"
head -1 stdout | grep -q '^table,key_bits,value_bits,op,n,load_factor,median_ms,gops,check' || fail "sweep: columns $(head -1 stdout)"
cmp -s stdout out/voxels.csv || fail "sweep: the CSV file is not what was printed"
is_png out/voxels.png
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  is_png out/voxels-time.png
else
  grep -q "python3-matplotlib" stderr || fail "sweep: does not say how to draw the plot"
fi

finish
