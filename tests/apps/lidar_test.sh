#!/bin/bash
# roost lidar: every format of points gives the same voxels; counts against Python's; bad files get one line.
# Usage: lidar_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

# One cloud in all formats, and what it should give: a thin wall, a line, scattered points, and copies.
python3 - <<'PY' || exit 1
import gzip, json, math, random, struct
random.seed(1)
f32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
points = [(0.1 * i + 0.05, 0.1 * j + 0.05, -0.55) for i in range(-20, 20) for j in range(30)]
points += [(5.05, 5.05, 0.1 * k + 0.05) for k in range(40)]
points += [tuple(random.uniform(-30, 30) for _ in range(3)) for _ in range(500)]
points += points[:100]
points = [tuple(f32(x) for x in p) for p in points]
bad = [(math.nan, 0.0, 0.0), (1.0, math.inf, 2.0)]
rows = points[:700] + bad + points[700:]
floats = b"".join(struct.pack("<4f", *p, 0.5) for p in rows)
write = lambda name, data: open(name, "wb").write(data)
write("a.bin", floats)
head = "format {} 1.0\ncomment x\nelement vertex %d\nproperty uchar red\n" % len(rows)
xyz = lambda t: "".join("property %s %s\n" % (t, a) for a in "xyz")
write("little.ply", ("ply\n" + head.format("binary_little_endian") + xyz("float") + "end_header\n").encode()
      + b"".join(struct.pack("<B3f", 7, *p) for p in rows))
write("big.ply", ("ply\n" + head.format("binary_big_endian") + xyz("double") + "element face 0\n"
      "property list uchar int vertex_indices\nend_header\n").encode() + b"".join(struct.pack(">B3d", 7, *p) for p in rows))
text = lambda p: " ".join(repr(x) for x in p)
write("ascii.ply", ("ply\n" + head.format("ascii") + xyz("float") + "end_header\n"
      + "".join("7 " + text(p) + "\n" for p in rows)).encode())
pcd = "# .PCD v0.7\nVERSION 0.7\nFIELDS n x y z\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 2 1 1 1\nWIDTH %d\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %d\nDATA " % (len(rows), len(rows))
write("ascii.pcd", (pcd + "ascii\n" + "".join("1 2 " + text(p) + "\n" for p in rows)).encode())
write("binary.pcd", (pcd + "binary\n").encode() + b"".join(struct.pack("<5f", 1, 2, *p) for p in rows))
def lzf(data):  # runs as they are, and copies of what came up to 8 KiB before
    out, literal, at, known = bytearray(), bytearray(), 0, {}
    def put():
        for i in range(0, len(literal), 32):
            out.append(len(literal[i:i + 32]) - 1)
            out.extend(literal[i:i + 32])
        literal.clear()
    while at < len(data):
        before = known.get(data[at:at + 3], -1)
        known[data[at:at + 3]] = at
        n = 0
        if 0 <= before and at - before <= 8192:
            while n < 264 and at + n < len(data) and data[before + n] == data[at + n]: n += 1
        if n < 3:
            literal.append(data[at])
            at += 1
            continue
        put()
        back = at - before - 1
        out.append(min(n - 2, 7) << 5 | back >> 8)
        if n - 2 >= 7: out.append(n - 2 - 7)
        out.append(back & 255)
        at += n
    put()
    return bytes(out)
fields = struct.pack("<%df" % (2 * len(rows)), *[1, 2] * len(rows)) + b"".join(
    struct.pack("<%df" % len(rows), *[p[a] for p in rows]) for a in range(3))
body = struct.pack("<II", len(lzf(fields)), len(fields)) + lzf(fields)
write("compressed.pcd", (pcd + "binary_compressed\n").encode() + body)
write("damaged.pcd", (pcd + "binary_compressed\n").encode() + body[:300] + b"\xff\xff\xff" + body[303:])
write("short_compressed.pcd", (pcd + "binary_compressed\n").encode() + body[:-1])
def las(minor, kind, extra, count, scale=1e-7, shift=(1.0, -2.0, 0.5)):
    h = bytearray(375 if minor >= 4 else 227)
    h[0:4], h[24], h[25], h[104] = b"LASF", 1, minor, kind
    struct.pack_into("<HI", h, 94, len(h), len(h) + 60)
    struct.pack_into("<HI", h, 105, 20 + extra, 0 if minor >= 4 else count)
    struct.pack_into("<6d", h, 131, *[scale] * 3, *shift)
    if minor >= 4: struct.pack_into("<Q", h, 247, count)
    return bytes(h) + b"v" * 60 + b"".join(
        struct.pack("<3i", *(round((x - o) / scale) for x, o in zip(p, shift))) + b"r" * (8 + extra) for p in points)
write("a.las", las(2, 0, 0, len(points)))
write("new.las", las(4, 6, 10, len(points)) + b"extended records")
write("short.las", las(2, 1, 8, len(points) + 1))
write("flat.las", las(2, 0, 0, len(points)).replace(struct.pack("<d", 1e-7), bytes(8), 1))
write("a.laz", las(2, 128, 0, len(points)))
def npy(shape, kind, body):
    h = "{'descr': %s, 'fortran_order': False, 'shape': %s, }" % (kind if kind[0] == "[" else repr(kind), shape)
    h += " " * (63 - (10 + len(h)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + body
mixed = "[('i', '<u2'), ('x', '<f8'), ('y', '>f4'), ('z', '>f8')]"
write("mixed.npy", npy("(%d,)" % len(rows), mixed, b"".join(
    struct.pack("<Hd", 7, p[0]) + struct.pack(">f", p[1]) + struct.pack(">d", p[2]) for p in rows)))
write("a.npy", npy("(%d, 4)" % len(rows), "<f4", floats))
write("doubles.npy", npy("(%d, 3)" % len(rows), "<f8", b"".join(struct.pack("<3d", *p) for p in rows)))
write("a.xyz", ("# points\n" + "".join(text(p) + " 9\n" for p in rows)).encode())
write("a.csv", ("time,Z, y,X\r\n" + "".join("0,%r,%r,%r\r\n" % (p[2], p[1], p[0]) for p in rows)).encode())
write("semicolons.txt", "\n\n".join("%r;%r;%r" % p for p in rows).encode())
voxels = {tuple(math.floor(x / 0.1) for x in p) for p in points}
around = [sum((x + a, y + b, z + c) in voxels for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)) for x, y, z in voxels]
json.dump({"points": len(rows), "not_finite": 2, "voxels": len(voxels),
           "box": [max(v[a] for v in voxels) - min(v[a] for v in voxels) + 1 for a in range(3)],
           "blocks": len({tuple(x // 4 for x in v) for v in voxels}),
           "voxels_with_neighbours": [around.count(k) for k in range(1, 28)]}, open("expected.json", "w"))
write("short.ply", open("little.ply", "rb").read()[:-1])
write("short.pcd", open("binary.pcd", "rb").read()[:-1])
write("short.npy", open("a.npy", "rb").read()[:-1])
write("short_ascii.pcd", open("ascii.pcd", "rb").read().rsplit(b"\n", 2)[0])
write("packed.pcd", (pcd + "binary_compressed\n").encode())
write("many.ply", b"ply\nformat binary_little_endian 1.0\nelement vertex 18446744073709551615\n" + xyz("float").encode() + b"end_header\n")
write("no_z.ply", b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nend_header\n1 2\n")
write("shape.npy", npy("(3,)", "<f4", floats[:12]))
write("complex.npy", npy("(1, 3)", "<c8", floats[:24]))
write("objects.npy", npy("(1,)", "[('who', '|O'), ('x', '<f4'), ('y', '<f4'), ('z', '<f4')]", floats[:20]))
write("halves.npy", npy("(1,)", "[('x', '<f2'), ('y', '<f4'), ('z', '<f4')]", floats[:10]))
write("turned.npy", npy("(3, 100)", "<f4", floats[:1200]))
write("long.npy", npy("(10, 3)", "<f4", floats[:124]))
write("long.ply", open("little.ply", "rb").read() + b"more")
write("wide.ply", open("ascii.ply", "rb").read().replace(b"\n7 ", b"\n7 7 "))
write("long.pcd", open("binary.pcd", "rb").read() + b"more")
write("a.npy.gz", gzip.compress(open("a.npy", "rb").read()))
write("five.bin", b"".join(struct.pack("<5f", *p, 0.5, 7) for p in rows[:1840]))
write("three.bin", b"".join(struct.pack("<3f", *p) for p in rows[:-2]))
write("eight.bin", b"".join(struct.pack("<8f", *p, 1, 0.5, 0, 0, 0) for p in rows))
write("doubles.bin", b"".join(struct.pack("<4d", *(x + 1e-9 for x in p), 0.5) for p in points))
write("packed.bin", gzip.compress(floats))
utm = [(500000 + 0.2 * i + 0.1, 5400000 + 0.2 * j + 0.1, 300.1) for i in range(30) for j in range(20)]
write("utm.npy", npy("(600, 3)", "<f8", b"".join(struct.pack("<3d", *p) for p in utm)))
write("utm.bin", b"".join(struct.pack("<4f", *p, 0) for p in utm))
write("nan.xyz", b"nan nan nan\n")
write("far.xyz", b"0 0 0\n1e9 0 0\n")
write("odd.bin", b"12345")
write("words.csv", b"1,2,3\n1,two,3\n")
write("two.csv", b"1,2,3\n1,2\n")
write("prose.txt", b"not a cloud\n")
write("empty.xyz", b"")
PY

for file in a.bin little.ply big.ply ascii.ply ascii.pcd binary.pcd compressed.pcd a.npy doubles.npy mixed.npy a.xyz a.csv semicolons.txt \
  a.npy.gz eight.bin; do
  record=()
  [[ $file == eight.bin ]] && record=(--record 8)
  "$roost" lidar --place host --reps 0 --format json "${record[@]}" "$file" >out.json 2>stderr || fail "$file: $(cat stderr)"
  python3 - <<'PY' || fail "$file: $(cat out.json)"
import json, sys
out, expected = json.load(open("out.json")), json.load(open("expected.json"))
wrong = {k: (out[k], v) for k, v in expected.items() if out[k] != v}
mean = sum((i + 1) * n for i, n in enumerate(expected["voxels_with_neighbours"])) / expected["voxels"]
sys.exit(bool(wrong) and print(wrong) is None or abs(out["neighbours_of_27"] - mean) > 1e-9)
PY
done

# LAS has no points that are not finite. The voxels that are written, against Python's.
for file in a.las new.las a.bin; do
  for ending in ply csv npy npz; do
    labels=labels.${ending/[pn]??/npy}
    "$roost" lidar --place host --reps 0 --output "out.$ending" --labels "$labels" --within 35 "$file" >stdout 2>stderr ||
      fail "$file: $(cat stderr)"
    python3 - "$file" "out.$ending" "$labels" <<'PY' || fail "$file: voxels as $ending"
import csv, math, struct, sys, zipfile
file, out, labels = sys.argv[1:]
rows = list(struct.iter_unpack("<4f", open("a.bin", "rb").read()))
points = [p[:3] if all(map(math.isfinite, p)) and math.hypot(*p[:3]) <= 35 else None for p in rows]
if file != "a.bin": points = [p for p, row in zip(points, rows) if all(map(math.isfinite, row))]
data = open(out, "rb").read()
if out.endswith("npz"):
    arrays = {}
    for name, (type, shape) in {"xyz": ("<f8", "(%d, 3)"), "counts": ("<u4", "(%d,)"), "neighbours": ("|u1", "(%d,)"),
                                "labels": ("<i8", "(%d,)"), "shift": ("<f8", "(3,)"), "size": ("<f8", "()")}.items():
        head, body = zipfile.ZipFile(out).read(name + ".npy").split(b"\n", 1)
        arrays[name] = [x for x, in struct.iter_unpack(type.replace("|", "<").replace("f8", "d").replace("u4", "I")
                                                       .replace("u1", "B").replace("i8", "q"), body)]
        rows = len(arrays[name]) // (3 if name == "xyz" else 1)
        header = {"descr": type, "fortran_order": False, "shape": eval(shape % rows if "%" in shape else shape)}
        assert head.startswith(b"\x93NUMPY") and eval(head[10:]) == header, head
    assert len(zipfile.ZipFile(out).namelist()) == 6 and arrays["shift"] == [0] * 3 and arrays["size"] == [0.1]
    xyz = arrays["xyz"]
    found = list(zip(xyz[::3], xyz[1::3], xyz[2::3], arrays["counts"], arrays["neighbours"]))
    assert struct.pack("<%dq" % len(points), *arrays["labels"]) == open(labels, "rb").read().split(b"\n", 1)[1]
elif out.endswith("csv"):
    found = [tuple(map(float, row)) for row in csv.reader(data.decode().splitlines()[1:])]
    assert data.startswith(b"x,y,z,points,neighbours\n")
else:
    mark = b"end_header\n" if out.endswith("ply") else b"\n"
    head, body = data.split(mark, 1)
    assert out.endswith("ply") or (len(head) + 1) % 64 == 0
    found = list(struct.iter_unpack("<3dIB", body))
data = open(labels, "rb").read()
if labels.endswith("csv"):
    label = [int(x) for x in data.decode().split()[1:]]
else:
    label = [x for x, in struct.iter_unpack("<q", data.split(b"\n", 1)[1])]
assert len(label) == len(points)
voxels = {}
for p, l in zip(points, label):
    assert (p is None) == (l == -1)
    if p is not None: voxels.setdefault(tuple(math.floor(x / 0.1) for x in p), []).append((p, l))
assert len(voxels) == len(found) and [l for at in voxels.values() for _, l in at[:1]] == list(range(len(found)))
for at, inside in voxels.items():
    (l,) = {l for _, l in inside}
    mean = [sum(p[a] for p, _ in inside) / len(inside) for a in range(3)]
    around = sum((at[0] + a, at[1] + b, at[2] + c) in voxels for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1))
    assert all(abs(m - f) < 1e-6 for m, f in zip(mean, found[l])) and found[l][3:] == (len(inside), around), (mean, found[l])
PY
  done
done
"$roost" lidar --reps 0 --format json - <a.xyz >piped.json || fail "standard input"
grep -q '"voxels": ' piped.json || fail "standard input: $(cat piped.json)"
"$roost" lidar --reps 0 --within 1 a.xyz | grep -q 'beyond --within' || fail "--within"

# reads TEXT X Y Z: the text has one point, which is this. doubtful TEXT WORDS: it is refused with these words.
reads() {
  printf '%b' "$1" >text.txt
  "$roost" lidar --place host --reps 0 --format json text.txt >out.json 2>stderr || fail "'$1': $(cat stderr)"
  [[ $(python3 -c 'import json; print(*json.load(open("out.json"))["least"])') == "$2 $3 $4" ]] || fail "'$1': $(cat out.json)"
}
doubtful() {
  printf '%b' "$1" >text.txt
  refused "$2" lidar text.txt
}
reads '1,5;-2,5;3\n' 1.5 -2.5 3.0
reads '1,5 2,5 3,125\n' 1.5 2.5 3.125
reads '1,5\t2,5\t3,5\n' 1.5 2.5 3.5
reads '"1,5","2,5","3,5"\n' 1.5 2.5 3.5
reads '1.5 , 2.5 , 3.5 ,\n' 1.5 2.5 3.5
reads '1e-400 1D+01 0x1p1\n' 0.0 10.0 2.0
reads '\xef\xbb\xbf"X","y [m]","z"\r1,2,3\r' 1.0 2.0 3.0
reads '# z y x\n3 2 1\n' 1.0 2.0 3.0
reads '# columns: y, x, z\n2, 1, 3\n' 1.0 2.0 3.0
reads '//X Y Z R\n1 2 3 0\n' 1.0 2.0 3.0
reads '1\n1 2 3\n1\n1 2 3\n' 1.0 2.0 3.0
reads 'x,y,z,point label\n1,2,3,traffic cone\n' 1.0 2.0 3.0
# With names, other columns may hold anything.
reads 'name,x,y,z\nA,1,2,3\nB,4,5,6\n' 1.0 2.0 3.0
reads 'time;x;y;z\n12:30:01;1,5;2,5;3,5\n' 1.5 2.5 3.5
reads 't,x,y,z,note\n2026-11-26 12:30:01,1,2,3,a b c d\n' 1.0 2.0 3.0
reads 'what x y z\ntree 1 2 3\n"two words" 4 5 6\n' 1.0 2.0 3.0
reads '# what x y z\ntree 1 2 3\n' 1.0 2.0 3.0
reads '# c0 x z y\nx 1 3 2\n' 1.0 2.0 3.0  # a text that is a name
reads '//c2,\ty,\tx,\tz\ntwo words,\t2,\t1,\t3,\n' 1.0 2.0 3.0  # blanks and commas, and one more
reads 'z,what,x,y\n3,12 Main Street,1,2\n' 1.0 2.0 3.0
reads 'what,x,y,z\n5" pipe,1,2,3\n"say ""no"", x",4,5,6\n' 1.0 2.0 3.0
reads 'what,x,y,z\n,1,2,3\n# a comment\n// x y z, too\n' 1.0 2.0 3.0
reads 'what,x,y,z\n"#7",1,2,3\n' 1.0 2.0 3.0
doubtful 'name,x,y,z\nA,1,2,3\nB,4,five,6\n' "line 3: column 3 is not a number: 'B,4,five,6'"
doubtful 'name,x,y,z\nA,1,12:30:01,3\n' "line 2: column 3 is not a number"
doubtful 'name,x,y,z\nA,1,2,\n' "line 2: column 4 is not a number"
doubtful 'name,x,y,z\nA,B,1,2,3\n' "names 4 columns"
doubtful 'name,x,y,z\nA,1,2,3\n#7,4,5,6\n' "line 3: may be a comment or a point"
doubtful 'name,x,y,z\n#7,4,5,6\nA,1,2,3\n' "line 2: may be a comment or a point"
doubtful 'A,1,2,3\n' "not a point cloud"
doubtful '1,234;2,345;3,456\n' "between thousands"
doubtful '1,234.5;2;3\n' "not a point cloud"
doubtful '1;1.234,5;2\n' "column 2 is not a number"
doubtful '1,5,2,5,3,5\n' "decimal commas"
doubtful '12 345,5 1 2 3\n1 045,5 1 2 3\n' "look like one number"
doubtful '1.5 2,5 3\n' "decimal commas and decimal points"
doubtful '1,2,3,4 5,6,7,8\n' "blanks and other marks"
doubtful '1.5,2.5,3.5\n1.5 2.5 3.5\n' "3 columns"
doubtful '1 2 3\n4 5 6 7\n' "line 2: 3 columns are expected"
doubtful '0,1,2\n1.5,2.5,3.5\n' "names of columns or a point"
doubtful '"x" "y" "z"\n"1" 1 2 3\n' "names 3 columns"
doubtful '# t x y z\n1 2 3\n' "names 4 columns"
doubtful 'x,y,z,X\n1,2,3,4\n' "more than one column x"
doubtful '3\n1 2 3\n4 5 6\n' "cut short: it has 2 of 3 points"
doubtful '1\n1 2 3\n4 5 6\n' "line 3: there are more points"
doubtful '1 2 1e400\n' "column 3 is not a number"
doubtful '1 2 +-3\n' "column 3 is not a number"
doubtful '\xff\xfe1\x00' "UTF-16"
doubtful 'LASF\x01\x02' "LAS"

# Where coordinates are large, voxels may be small; what floats cannot tell is said.
"$roost" lidar --size 0.1 --reps 0 --place host --format json utm.npy >out.json 2>stderr || fail "utm.npy: $(cat stderr)"
grep -q '"voxels": 600' out.json && grep -q '500000.1' out.json && [[ ! -s stderr ]] || fail "utm.npy: $(cat out.json stderr)"
"$roost" lidar --size 0.1 --reps 0 --place host utm.bin 2>stderr | grep -q 'corner at (5000' || fail "utm.bin"
grep -q '0.5 apart' stderr || fail "utm.bin: $(cat stderr)"

# What is added to coordinates: in the report, in the files that can hold it, and in the coordinates.
shifted() {  # WORD X Y Z
  "$roost" lidar --size 0.1 --reps 0 --place host --format json --shift "$1" --output moved.npz utm.npy >out.json || fail "--shift $1"
  "$roost" lidar --size 0.1 --reps 0 --place host --shift "$1" --output moved.ply utm.npy >table || fail "--shift $1"
  "$roost" lidar --size 0.1 --reps 0 --place host --output kept.csv utm.npy >/dev/null || fail "without --shift"
  python3 - "$@" <<'PY' || fail "--shift $1: $(cat out.json)"
import csv, json, struct, sys, zipfile
shift = tuple(map(float, sys.argv[2:]))
assert tuple(json.load(open("out.json"))["shift"]) == shift
short = [repr(x).removesuffix(".0") for x in shift]
said = "(%s) is added" % ", ".join(short) in open("table").read()
assert said == (sys.argv[1] != "none")
doubles = lambda name: struct.unpack("<%dd" % (len(body := z.read(name).split(b"\n", 1)[1]) // 8), body)
z = zipfile.ZipFile("moved.npz")
assert doubles("shift.npy") == shift
head, body = open("moved.ply", "rb").read().split(b"end_header\n", 1)
assert (b"\ncomment shift %s\n" % " ".join(short).encode() in head) == any(shift), head
ply, npz = [v[:3] for v in struct.iter_unpack("<3dIB", body)], doubles("xyz.npy")
rows = [tuple(map(float, row[:3])) for row in list(csv.reader(open("kept.csv")))[1:]]
assert len(ply) == len(rows) == 600
for i, row in enumerate(rows):
    assert ply[i] == npz[3 * i:3 * i + 3] and all(abs(x + s - m) < 2e-9 for x, s, m in zip(row, shift, ply[i])), (i, row, ply[i])
PY
}
shifted none 0 0 0
shifted auto -500000 -5400000 0
shifted -500003,-5400001.5,-300 -500003 -5400001.5 -300
shifted 0,0,1 0 0 1
printf '9999 -9999 0\n' >near.xyz
printf '10000 -10000 0\n' >distant.xyz
for case in "near 0 0 0" "distant -10000 10000 0"; do
  read -r name x y z <<<"$case"
  "$roost" lidar --reps 0 --place host --shift auto "$name.xyz" | grep -q "^($x, $y, $z) is added" || fail "--shift auto $name"
done
for word in 1,2 1,2,3,4 "1,2," auto,1,2 nan,0,0 0,inf,0 a "1 2 3" ""; do refused "neither auto, none nor" lidar --shift "$word" a.xyz; done
refused "--shift 1e15,0,0 moves them" lidar --reps 0 --shift 1e15,0,0 a.xyz
"$roost" lidar --reps 0 --shift 1e14,0,0 a.xyz >stdout || fail "--shift 1e14,0,0"

# Times: all tables agree with each other on a simulated street; and a picture.
timeout 300 "$roost" lidar --generate 1 --size 0.4 --place host --threads 2 --reps 1 --channels 4 --format json \
  --picture cloud.png --pixels 200 >out.json 2>stderr || fail "--generate: $(cat stderr)"
[[ $(grep -c '"check": "ok"' out.json) -eq 10 ]] || fail "times: $(cat out.json)"
for table in coordinate_index kernel_map document_table sorted_voxels std_voxels sparse_conv; do
  grep -q "\"$table\"" out.json || fail "$table is not measured"
done
[[ $(head -c 8 cloud.png | tail -c 7 | head -c 3) == PNG ]] || fail "no picture"
"$roost" lidar --generate 1 --size 0.8 --place host --reps 1 | grep -q 'std::unordered_map: 27 neighbours .* ok' || fail "the table"

refused "not both" lidar
refused "not both" lidar a.xyz --generate 1
refused "no such file" lidar nothing.ply
refused "is a directory" lidar .
for file in short.pcd short.npy short_ascii.pcd; do refused "$file: is cut short" lidar $file; done
for file in short.ply many.ply; do refused "is not whole; it is damaged or cut short" lidar $file; done
refused "4 bytes after" lidar long.npy
refused "4 bytes after" lidar long.pcd
refused "more in it than its header" lidar long.ply
refused "more numbers in its line" lidar wide.ply
refused "--record 4 or --record 5" lidar five.bin
refused "--record 4 or --record 3" lidar three.bin
refused "--record 4 or --record 8" lidar eight.bin
refused "save them as .npy" lidar doubles.bin
refused "gzip" lidar packed.bin
refused "whole records of 7" lidar --record 7 a.bin
"$roost" lidar --reps 0 --place host --record 5 five.bin | grep -q '1840 points, 2 not finite' || fail "five.bin"
refused "is cut short" lidar packed.pcd
refused "is cut short" lidar short_compressed.pcd
refused "damaged" lidar damaged.pcd
refused "is cut short" lidar short.las
refused "LAZ file: .*laszip -i" lidar a.laz
refused "the scale 0 and" lidar flat.las
refused "ends in .ply, .csv, .npy or .npz" lidar --output voxels.xyz a.xyz
refused "no property z" lidar no_z.ply
refused "another shape" lidar shape.npy
refused "another shape" lidar turned.npy
refused "other numbers" lidar complex.npy
refused "the field 'who', whose size" lidar objects.npy
refused "the field 'x' of the type '<f2'" lidar halves.npy
refused "none of its 1 points is finite" lidar nan.xyz
refused "larger --size" lidar --size 0.01 far.xyz
refused "no point is within" lidar --within 0.001 a.xyz
refused "5 bytes" lidar odd.bin
refused "line 2: column 2" lidar words.csv
refused "line 2: 3 columns are expected" lidar two.csv
refused "not a point cloud" lidar prose.txt
refused "has no points" lidar empty.xyz
refused "size" lidar --size 0 a.xyz
refused "size" lidar --size nan a.xyz
refused "size" lidar --size 1e-300 a.xyz
refused "size" lidar --size -1 a.xyz
refused "within" lidar --within nan a.xyz
refused "turn" lidar --turn nan a.xyz
refused "record" lidar --record 2 a.bin
refused "generate" lidar --generate 0
refused "cannot be written" lidar --generate 1 --size 1 --reps 0 --picture no/folder.png
refused "a.jpg: the picture is a PNG file" lidar --generate 1 --size 1 --reps 0 --picture a.jpg
cp a.xyz same.xyz
refused "would be overwritten" lidar --reps 0 --picture same.xyz same.xyz
cmp -s a.xyz same.xyz || fail "a picture was written over its cloud"
finish
