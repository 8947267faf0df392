#!/bin/bash
# roost lidar: every format of points gives the same voxels; counts against Python's; bad files get one line.
# Usage: lidar_test.sh PATH_OF_ROOST
# shellcheck source=tests/tool/lib.sh
source "$(dirname "$0")/lib.sh"

# One cloud in all formats, and what it should give: a thin wall, a line, scattered points, and copies.
python3 - <<'PY' || exit 1
import json, math, random, struct
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
def npy(shape, kind, body):
    h = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    h += " " * (63 - (10 + len(h)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + body
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
write("ints.ply", b"ply\nformat ascii 1.0\nelement vertex 1\nproperty int x\nproperty float y\nproperty float z\nend_header\n1 2 3\n")
write("shape.npy", npy("(3,)", "<f4", floats[:12]))
write("ints.npy", npy("(1, 3)", "<i4", floats[:12]))
write("nan.xyz", b"nan nan nan\n")
write("far.xyz", b"0 0 0\n1e9 0 0\n")
write("odd.bin", b"12345")
write("words.csv", b"1,2,3\n1,two,3\n")
write("two.csv", b"1,2,3\n1,2\n")
write("prose.txt", b"not a cloud\n")
write("empty.xyz", b"")
PY

for file in a.bin little.ply big.ply ascii.ply ascii.pcd binary.pcd a.npy doubles.npy a.xyz a.csv semicolons.txt; do
  "$roost" lidar --place host --reps 0 --format json "$file" >out.json 2>stderr || fail "$file: $(cat stderr)"
  python3 - <<'PY' || fail "$file: $(cat out.json)"
import json, sys
out, expected = json.load(open("out.json")), json.load(open("expected.json"))
wrong = {k: (out[k], v) for k, v in expected.items() if out[k] != v}
mean = sum((i + 1) * n for i, n in enumerate(expected["voxels_with_neighbours"])) / expected["voxels"]
sys.exit(bool(wrong) and print(wrong) is None or abs(out["neighbours_of_27"] - mean) > 1e-9)
PY
done
"$roost" lidar --reps 0 --format json - <a.xyz >piped.json || fail "standard input"
grep -q '"voxels": ' piped.json || fail "standard input: $(cat piped.json)"
"$roost" lidar --reps 0 --within 1 a.xyz | grep -q 'beyond --within' || fail "--within"

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
for file in short.ply short.pcd short.npy short_ascii.pcd many.ply; do refused "$file: is cut short" lidar $file; done
refused "binary_compressed" lidar packed.pcd
refused "no property z" lidar no_z.ply
refused "x is no float" lidar ints.ply
refused "another shape" lidar shape.npy
refused "other numbers" lidar ints.npy
refused "none of its 1 points is finite" lidar nan.xyz
refused "larger --size" lidar --size 0.01 far.xyz
refused "no point is within" lidar --within 0.001 a.xyz
refused "5 bytes" lidar odd.bin
refused "line 2: column 2" lidar words.csv
refused "line 2: column 3" lidar two.csv
refused "no cloud of points" lidar prose.txt
refused "has no points" lidar empty.xyz
refused "size" lidar --size 0 a.xyz
refused "size" lidar --size nan a.xyz
refused "generate" lidar --generate 0
refused "cannot be written" lidar --generate 1 --size 1 --reps 0 --picture no/folder.png
finish
