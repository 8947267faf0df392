#!/bin/bash
# roost voxels A B ...: solids on the command line: what is counted, what is refused, what is said of bad meshes.
# Usage: solids_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

# solids ARGUMENT...: the JSON of these arguments, which may put what they like on stderr, in the file json.
solids() {
  "$roost" voxels --place host --format json --no-picture "$@" >json 2>stderr || fail "$*: $(cat stderr)"
}

# value EXPRESSION: of the JSON, as Python calls it.
value() {
  /usr/bin/python3 -c "import json, sys; j = json.load(open('json')); m = j['meshes']; r = j['result']; print($1)"
}

# holds EXPRESSION: fails where it is not true.
holds() {
  [[ $(value "$1") == True ]] || fail "not so: $1 in $(cat json)"
}

# Two cubes, one half a side along from the other: 32 voxels a side in a grid of 48, or 46 where the other cube
# is not needed as a whole.
cube=$data/cube.obj
for op in union:49152 intersection:48668 difference:48668 xor:32768 surfaces:49152; do
  solids "$cube" "$cube" --grid 48 --op "${op%:*}" --place-b "move 0.5 0 0"
  holds "r['volume_voxels'] == ${op#*:}"
  case $op in
  difference:*) holds "[one['volume_voxels'] for one in m] == [46 ** 3, 46 * 46 * 24]" ;;
  intersection:*) holds "[one['clipped'] for one in m] == [True, True]" ;;
  *) holds "[one['volume_voxels'] for one in m] == [32768, 32768]" ;;
  esac
  holds "sum(j['classes'][c] for c in ('outside', 'inside', 'both')) == m[0]['voxels'] + m[1]['voxels'] - j['classes']['both']"
  holds "all(one['bytes'] > 0 and len(one['milliseconds']) > 1 and one['voxels'] > 0 for one in m + [r])"
  holds "j['classes'] == r['classes'] and j['grid'] == 48 and j['op'] == '${op%:*}'"
done
is_png() {
  [[ $(head -c 8 "$1" 2>/dev/null | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "$1 is no PNG"
}
"$roost" voxels "$cube" "$cube" --grid 33 --place host --format json --no-picture >json 2>stderr
[[ ! -e voxels.png && ! -s stderr ]] || fail "--no-picture: $(ls; cat stderr)"
"$roost" voxels "$cube" "$cube" --grid 48 --place host --format json >json 2>stderr || fail "picture: $(cat stderr)"
is_png voxels.png
[[ $(cat stderr) == "picture: ./voxels.png" ]] || fail "picture: stderr has $(cat stderr)"

# The same twice, and beside each other.
solids "$cube" "$cube" --grid 33 --op difference
holds "r['volume_voxels'] == 0 and r['voxels'] == 0 and j['classes']['outside'] == j['classes']['inside'] == 0"
solids "$cube" "$cube" --grid 33 --op intersection
holds "r['volume_voxels'] == m[0]['volume_voxels'] == 33 ** 3"
solids "$cube" "$cube" --grid 64 --op intersection --place-b "move 3 0 0"
holds "r['volume_voxels'] == 0 and j['classes']['both'] == 0"
solids "$cube" --grid 1
holds "m[0]['volume_voxels'] == 1 and r['volume_voxels'] == 1 and 'classes' not in j"
solids "$cube" "$cube" "$cube" --grid 62 --op difference --place-b "scale 0.5" --place-c "move 0 0.5 0"
holds "r['volume_voxels'] == 60 ** 3 // 2 - 30 ** 3 // 2 and len(m) == 3 and 'classes' not in j"

# What the result does not need does not make the grid coarser.
solids "$cube" sphere:40 --grid 64 --op difference
holds "j['voxel_side'] == 1 / 64 and not m[1]['clipped'] and j['notes'] == []"
for far in 0.9 1.5 -3 1000 -30000; do
  for axis in "$far 0 0" "0 $far 0" "0 0 $far" "$far $far $far"; do
    solids "$cube" sphere:40 --grid 64 --op difference --place-b "scale 0.7 move $axis"
    holds "r['volume_voxels'] == m[0]['volume_voxels'] == 64 ** 3 and r['surface_area'] == 6 * 64 ** 2"
    holds "m[1]['clipped'] and m[1]['volume_voxels'] == 0 and sum('reaches out of the grid' in n for n in j['notes']) == 1"
  done
done
# As far as a corner may lie; then the grid grows.
solids "$cube" "$cube" --grid 64 --op difference --place-b "move 40000 0 0"
holds "1.2 / 64 < j['voxel_side'] < 1.3 / 64 and r['volume_voxels'] == m[0]['volume_voxels']"
# A part of a far larger solid: a half space.
solids torus:60 box --grid 66 --op difference --place-b "scale 20000 move 10000 0 0"
holds "abs(2 * r['volume_voxels'] - m[0]['volume_voxels']) < 0.05 * m[0]['volume_voxels']"
cp json half
solids torus:60 box --grid 66 --op intersection --place-b "scale 20000 move -10000 0 0"
cp json other
/usr/bin/python3 -c "
import json
a, b = (json.load(open(f))['result'] for f in ('half', 'other'))
assert abs(a['surface_area'] / b['surface_area'] - 1) < 0.01, (a, b)
" || fail "both halves of a torus differ"

# Turns, shapes, rules, the paper's method, the baseline.
solids "$cube" sphere --grid 64 --op difference --place-b "scale 1.2 rotate 1 2 3 40" --inside fill --conservative --baseline --threads 1
holds "j['fill']['different'] == 0 and j['fill']['unknown'] == 0 and j['fill']['classes'] == j['classes']"
holds "j['bit_grid']['volume_voxels'] == r['volume_voxels'] and j['bit_grid']['exposed_voxels'] == r['exposed_voxels']"
solids torus:100 box --grid 50 --op union --place-b "scale 0.3" --conservative
holds "m[0]['open_edges'] == 0 and m[0]['voxels'] > m[0]['exposed_voxels']"
[[ ! -s stderr ]] || fail "torus: stderr has $(cat stderr)"

# An open mesh, and one with a face that looks the other way.
sed '0,/^f/{/^f/d}' "$cube" >open.obj
solids open.obj --grid 16
grep -q "edges are open.*--inside vote" stderr || fail "open.obj: nothing is said: $(cat stderr)"
holds "m[0]['open_edges'] > 0"
solids open.obj --grid 16 --inside vote
grep -q "edges are open" stderr && fail "open.obj: --inside vote is told of open edges"
awk '/^f/ && !done { print $1, $4, $3, $2, $5; done = 1; next } { print }' "$cube" >turned.obj
solids turned.obj --grid 16
grep -q "face opposite ways.*--inside parity" stderr || fail "turned.obj: nothing is said: $(cat stderr)"
solids turned.obj --grid 16 --inside parity
holds "r['volume_voxels'] == 4096"

# Frames: quarter turns leave a cube as it is; two meshes change; a strip of pictures, and times of all steps.
solids "$cube" --frames 4 --grid 40
[[ $(/usr/bin/python3 -c "import json; print(json.load(open('json'))['volume_voxels'])") == "[64000, 64000, 64000, 64000]" ]] ||
  fail "frames of a cube: $(cat json)"
[[ ! -e frames.png ]] || fail "frames: a picture in spite of --no-picture"
"$roost" voxels --place host --format json "$cube" sphere:20 --frames 6 --grid 30 --op difference \
  --place-b "scale 0.7 move 0.3 0 0" >json 2>stderr || fail "frames: $(cat stderr)"
/usr/bin/python3 -c "
import json
j = json.load(open('json'))
assert j['frames'] == len(j['volume_voxels']) == len(j['voxels']) == 6 and len(set(j['volume_voxels'])) > 1 and min(j['voxels']) > 0
assert 0 < j['milliseconds']['least'] <= j['milliseconds']['median'] <= j['milliseconds']['most']
assert list(j['steps']) == ['snap', 'cross', 'group', 'order', 'exposed', 'classes'] and all(j['steps'].values())
" 2>stderr || fail "frames: $(cat stderr json)"
is_png frames.png

# A folder is the frames of a mesh, in the order of the numbers in their names, and round again.
mkdir walk empty
cp "$cube" walk/cube_9.obj
awk '$1 == "v" { $2 /= 2 } { print }' "$cube" >walk/cube_10.obj
awk '$1 == "v" { $2 /= 4 } { print }' "$cube" >walk/cube_11.obj
echo "no mesh" >walk/notes.txt
solids walk --frames 5 --grid 64
[[ $(/usr/bin/python3 -c "import json; print(json.load(open('json'))['volume_voxels'])") == "[262144, 131072, 65536, 262144, 131072]" ]] ||
  fail "frames of a folder: $(cat json)"
solids walk sphere walk --frames 3 --grid 32 --op union
refused "empty: .*no mesh" voxels empty "$cube" --frames 2
refused "walk: .*--frames" voxels walk "$cube"
refused "walk: .*--frames" voxels walk
cp walk/notes.txt walk/cube_12.obj
refused "cube_12.obj" voxels walk --frames 2
refused "leave --export" voxels "$cube" --frames 2 --export a.ply
refused "frames" voxels "$cube" --frames 0

# The table.
"$roost" voxels "$cube" "$cube" --place host --no-picture --grid 48 --op difference --place-b "move 0.5 0 0" --baseline >stdout 2>stderr || fail "table: $(cat stderr)"
grep -q "^A - B .* 48668 " stdout || fail "table: $(cat stdout)"
grep -q "about [0-9]* MiB" stdout || fail "table: does not say how many bytes: $(cat stdout)"
[[ $(cat stderr) == "$cube: reaches out of the grid, "* && $(wc -l <stderr) -eq 1 ]] || fail "table: stderr has $(cat stderr)"

# The area of boxes is exact where they fill the grid, and comes closer with finer grids where they do not and
# for spheres; faces that lie on each other count once.
for grid in 7 32 100; do
  solids "$cube" --grid $grid
  holds "r['surface_area'] == m[0]['surface_area'] == 6 * $grid ** 2"
done
solids "$cube" "$cube" --grid 64
holds "r['surface_area'] == 6 * 64 ** 2"
solids "$cube" "$cube" --grid 48 --op xor --place-b "move 0.5 0 0"
holds "r['surface_area'] == 2 * (2 * 32 ** 2 + 4 * 32 * 16)"
{ cat "$cube"; grep ^f "$cube"; } >twice.obj
solids twice.obj --grid 32
holds "r['volume_voxels'] == 32 ** 3 and r['surface_area'] == 6 * 32 ** 2"
for grid in 50 200; do
  solids box --grid $grid --place-a "rotate 1 2 3 40"
  holds "abs(r['surface_area'] * j['voxel_side'] ** 2 / 6 - 1) < 1 / $grid"
  solids sphere:600 --grid $grid
  holds "abs(r['surface_area'] * j['voxel_side'] ** 2 / 3.14159265 - 1) < 0.1 / $grid"
done

# Meshes of triangles: the same in all formats, closed, and what they were when they are read again.
for surface in smooth sides; do
  solids torus:60 box --grid 40 --op difference --place-b "scale 0.4 move 0.5 0 0" --surface $surface \
    --export cut.obj --export cut.stl --export cut.glb --export cut.ply
  volume=$(value "r['volume_voxels'] * j['voxel_side'] ** 3")
  for file in cut.obj cut.stl cut.glb cut.ply; do
    solids $file --grid 100
    holds "m[0]['open_edges'] == m[0]['turned_edges'] == 0"
    holds "abs(r['volume_voxels'] * j['voxel_side'] ** 3 / $volume - 1) < 0.03"
    [[ $file == cut.glb ]] && continue  # in meters
    solids $file cut.obj --grid 50 --op xor
    holds "r['volume_voxels'] == 0"
  done
done
grep -q "^vn\|^vt" cut.obj && fail "cut.obj: more than vertices and faces"
solids "$cube" --grid 8 --export sides.ply
[[ $(grep -ac "^comment\|uchar int vertex_indices" sides.ply) -eq 1 ]] || fail "sides.ply: $(head -c 300 sides.ply)"
for name in none.obj none.stl none.glb; do
  "$roost" voxels "$cube" "$cube" --place host --no-picture --grid 8 --op difference --export $name >stdout 2>stderr && fail "$name: nothing was written"
  [[ $(tail -1 stderr) == *"$name: the result has no voxels"* && ! -e $name ]] || fail "$name: $(cat stderr)"
done
refused "surfaces have no sides" voxels "$cube" "$cube" --op surfaces --export a.obj
refused "surface" voxels "$cube" --surface rough --export a.obj
refused "--surface requires --export" voxels "$cube" --surface sides

# Units: the true relative sizes, and what is said of them.
/usr/bin/python3 - "$cube" <<'PY'
import sys, zipfile

corners = [line.split()[1:] for line in open(sys.argv[1]) if line.startswith("v ")]
faces = [[int(w.split("/")[0]) - 1 for w in line.split()[1:]] for line in open(sys.argv[1]) if line.startswith("f ")]
triangles = [(f[0], f[k], f[k + 1]) for f in faces for k in range(1, len(f) - 1)]


def mesh(size):
    vertices = "".join('<vertex x="%.17g" y="%.17g" z="%.17g"/>' % tuple(float(x) * size for x in c) for c in corners)
    return "<mesh><vertices>" + vertices + "</vertices><triangles>" + "".join(
        '<triangle v1="%d" v2="%d" v3="%d"/>' % t for t in triangles) + "</triangles></mesh>"


def write(name, unit, size, item='<item objectid="1"/>', more=""):
    model = (f'<?xml version="1.0"?><!-- <model unit="foot"> --><model {unit} '
             'xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02"><resources>'
             f'<object id="1" type="model">{mesh(size)}</object>{more}</resources><build>{item}</build></model>')
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_rels/.rels", '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/'
                         'package/2006/relationships"><Relationship Target="/3D/3dmodel.model" Id="rel0" '
                         'Type="http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"/></Relationships>')
        archive.writestr("3D/3dmodel.model", model)


for unit, metres in (("micron", 1e-6), ("centimeter", 1e-2), ("inch", 0.0254), ("foot", 0.3048), ("meter", 1)):
    write(unit + ".3mf", f'unit="{unit}"', 1e-3 / metres * 10)
write("none.3mf", 'xml:lang="en"', 10)
write("parsec.3mf", 'unit="parsec"', 10)
write("parts.3mf", "unit='inch'", 1, '<item objectid="2" transform="1 0 0 0 1 0 0 0 1 5 0 0"/>',
      '<object id="2"><components><component objectid="1"/>'
      '<component objectid="1" transform="-1 0 0 0 1 0 0 0 1 1.5 0 0"/></components></object>')
PY
for unit in micron centimeter inch foot meter; do
  solids none.3mf $unit.3mf --grid 32 --op xor
  holds "m[0]['volume_voxels'] == 32 ** 3 and r['volume_voxels'] == 0 and j['unit'] == 'millimeter' and m[1]['unit'] == '$unit'"
  grep -q "all lengths are in millimeter: none.3mf is, $unit.3mf is in $unit, and taken times" stderr || fail "$unit: $(cat stderr)"
done
solids inch.3mf "$cube" --grid 30
holds "j['unit'] == 'inch' and m[1]['unit'] is None and any('has no unit, and is taken for inch' in n for n in j['notes'])"
"$roost" voxels inch.3mf none.3mf --place host --no-picture --grid 32 >stdout 2>stderr || fail "units: $(cat stderr)"
grep -q "a voxel is [0-9.]* inch wide" stdout || fail "units: no unit in $(cat stdout)"
solids "$cube" "$cube" --grid 8
holds "j['unit'] is None and j['notes'] == []"
# Two parts that overlap, one of which is mirrored: what both hold stays inside.
solids parts.3mf --grid 30
holds "r['volume_voxels'] == 30 * 20 * 20"
refused "parsec.3mf: .*unit 'parsec'" voxels parsec.3mf "$cube"

# Coordinates of a country's map: whole where the file has all digits, and a warning where it has not.
awk '$1 == "v" { printf "v %.3f %.3f %.3f\n", 500000 + 0.3 * $2, 5400000 + 0.3 * $3, 0.3 * $4; next } { print }' "$cube" >far.obj
solids far.obj --grid 64 --export far.ply
holds "r['volume_voxels'] == 64 ** 3 and j['notes'] == []"
"$roost" voxels far.obj --place host --no-picture --grid 64 --export far.stl >stdout 2>stderr && fail "far.stl: floats were written"
grep -q "far.stl: holds floats, which are too coarse" stderr || fail "far.stl: $(cat stderr)"
solids far.obj --grid 64 --surface sides --export again.obj
solids again.obj far.obj --grid 64 --op xor
holds "r['volume_voxels'] == 0"
solids far.ply far.obj --grid 64 --op xor
[[ $(head -4 far.ply | tail -1) == "property double x" ]] || fail "far.ply: coordinates are $(head -4 far.ply | tail -1)"
/usr/bin/python3 - <<'PY'
import struct
p = [(500000 + x, 5400000 + y, z) for x, y, z in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))]
with open("coarse.stl", "wb") as f:
    f.write(bytes(80) + struct.pack("<I", 4))
    for t in ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)):
        f.write(struct.pack("<12fH", 0, 0, 0, *(c for i in t for c in p[i]), 0))
PY
solids coarse.stl --grid 64
[[ $(grep -c "coarse.stl: corners may be off by 16 voxels" stderr) -eq 1 ]] || fail "coarse.stl: $(cat stderr)"

# A closed solid between the centres of voxels.
awk '$1 == "v" { print "v", $2, $3, 0.001 * $4; next } { print }' "$cube" >thin.obj
solids thin.obj --grid 15 --place-a "rotate 1 0 0 90"
[[ $(value "r['volume_voxels']") -ne 0 ]] || grep -q "thin.obj: is closed, but no voxel" stderr || fail "thin.obj: $(cat stderr)"
solids thin.obj "$cube" --grid 16
holds "m[0]['volume_voxels'] == 0 and sum('is closed, but no voxel' in n for n in j['notes']) == 1"
# A mesh that is narrower than a voxel, since another one is far away; a finer grid helps where there is one.
solids "$cube" "$cube" --grid 32 --place-b "move 1e30 0 0"
holds "sum('the grid spans 1e+30 times its width; bring the meshes nearer' in n and '--grid' not in n for n in j['notes']) == 2"
solids "$cube" "$cube" --grid 64 --place-b "move 100 0 0"
holds "sum('or take a --grid of more than 101' in n for n in j['notes']) == 2"
solids "$cube" "$cube" --grid 102 --place-b "move 100 0 0"
holds "j['notes'] == []"

# What is wrong with a command line.
for bad in -1 0 4294967296 18446744073709551616 1e3 nan 99999999999999999999999; do refused "grid" voxels "$cube" "$cube" --grid "$bad"; done
for bad in "scale 0" "scale nan" "scale inf" "scale 1e400" "scale" "move 1 2" "rotate 0 0 0 9" "move 1e300 0 0"; do
  refused "'$bad'" voxels "$cube" "$cube" --place-b "$bad"
done
refused "grid of 4097 " voxels "$cube" "$cube" --grid 4097
refused "grid of 0 " voxels "$cube" "$cube" --grid 0
refused "grid of 1025 .*fill" voxels "$cube" "$cube" --grid 1025 --inside fill
refused "scale 0" voxels "$cube" "$cube" --place-b "scale 0"
refused "'turn'" voxels "$cube" "$cube" --place-b "turn 3"
refused "--place-c" voxels "$cube" "$cube" --place-c "scale 2"
refused "two meshes" voxels "$cube" --op surfaces
refused "two meshes" voxels "$cube" "$cube" "$cube" --inside fill
refused "no such file" voxels "$cube" cone
refused "sphere:2" voxels "$cube" sphere:2
refused "csv\|CSV" voxels "$cube" "$cube" --format csv
refused "sweep" voxels "$cube" "$cube" --sweep
if ! nvidia-smi -L >nvidia 2>&1; then
  refused "CUDA" voxels "$cube" "$cube" --place cuda
  "$roost" voxels "$cube" "$cube" --no-picture --grid 8 >stdout 2>stderr || fail "without a GPU: $(cat stderr)"
  grep -q "^no CUDA device .*the CPU does it" stdout || fail "without a GPU: that is not said: $(cat stdout)"
fi
(ulimit -v 1000000 && exec "$roost" voxels "$cube" "$cube" --place host --grid 4096 >stdout 2>stderr) &&
  fail "a grid that does not fit was made"
[[ $(wc -l <stderr) -eq 1 ]] || fail "a grid that does not fit: $(cat stderr)"
grep -q "grid of 4096.* about [0-9]* MiB" stdout || fail "a grid that does not fit: not how many bytes: $(cat stdout)"

finish
