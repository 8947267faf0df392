#!/bin/bash
# roost match: pictures found in others on both places, what is no match, and one line on stderr for what is wrong.
# Usage: match_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
export LC_ALL=C

places=(host)
"$roost" info | grep -q '^cuda [0-9]' && places+=(cuda)

# scene SEED SCALE TURN DX DY: boxes as a camera sees them that is turned (degrees), nearer and aside; 240 x 180, PGM.
scene() {
  awk -v seed="$1" -v scale="$2" -v turn="$3" -v dx="$4" -v dy="$5" 'BEGIN {
    srand(seed)
    w = 240; h = 180; n = 45
    for (i = 0; i < n; ++i) {
      t = rand() * 6.2832; a = (0.03 + 0.1 * rand()) * w
      x[i] = rand() * w; y[i] = rand() * h; c[i] = cos(t) / a; s[i] = sin(t) / a; f[i] = 0.4 + rand(); v[i] = int(250 * rand())
    }
    d = turn * 0.017453292519943295
    A = scale * cos(d); B = scale * sin(d)
    X = (w - 1) / 2 + dx - (A * (w - 1) / 2 - B * (h - 1) / 2)
    Y = (h - 1) / 2 + dy - (B * (w - 1) / 2 + A * (h - 1) / 2)
    printf "P2\n%d %d\n255\n", w, h
    for (r = 0; r < h; ++r) for (q = 0; q < w; ++q) {
      px = A * q - B * r + X; py = B * q + A * r + Y; shade = 128
      for (i = n - 1; i >= 0; --i) {
        ex = px - x[i]; ey = py - y[i]
        u = ex * c[i] + ey * s[i]; z = (ey * c[i] - ex * s[i]) * f[i]
        if (u < 1 && u > -1 && z < 1 && z > -1) { shade = v[i]; break }
      }
      print shade
    }
  }' | binary
}
# A PGM of numbers as one of bytes.
binary() {
  /usr/bin/python3 -c 'import sys; words = sys.stdin.read().split(); sys.stdout.buffer.write(b"P5\n%s %s\n255\n" % (words[1].encode(), words[2].encode()) + bytes(map(int, words[4:])))'
}
flat() { # WIDTH HEIGHT
  { printf 'P2\n%d %d\n255\n' "$1" "$2"; yes 99 | head -n $(($1 * $2)); } | binary
}

is_png() { [[ $(head -c 8 "$1" 2>/dev/null | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "$1 is no PNG"; }

scene 1 1 0 0 0 >reference.pgm
scene 1 0.9 30 6 -4 >turned.pgm
scene 1 1.2 200 0 5 >farther.pgm
scene 2 1 0 0 0 >other.pgm
flat 240 180 >flat.pgm
flat 1 1 >dot.pgm
small=(--k 90 --m 500)

for place in "${places[@]}"; do
  for votes in shared global; do
    "$roost" match reference.pgm turned.pgm farther.pgm "${small[@]}" --votes $votes --against sorted --place "$place" --format json \
      >$votes.json 2>stderr || fail "$place, $votes: exit code $?: $(cat stderr)"
    /usr/bin/python3 - $votes.json "$place" <<'PY' || fail "$place, $votes: $(cat $votes.json)"
import json
import math
import sys

found = json.load(open(sys.argv[1]))
reference, queries = found["reference"], found["queries"]
assert found["place"] == sys.argv[2]
assert reference["items"] == reference["bases"] * (reference["points"] - 2) > 10000
assert reference["keys"] <= reference["items"] and reference["most_values"] >= reference["values_a_key"] > 1
assert [q["name"] for q in queries] == ["turned", "farther"] and found["summary"]["matched"] == 2
for query, scale, turn in zip(queries, (0.9, 1.2), (30, -160)):
    assert query["matched"] and abs(query["scale"] - scale) < 0.01 and abs(query["turn_degrees"] - turn) < 0.5
    x, y = ((query["a"] * 119.5 - query["b"] * 89.5 + query["x"]), (query["b"] * 119.5 + query["a"] * 89.5 + query["y"]))
    assert math.dist((x, y), (125.5, 85.5) if turn == 30 else (119.5, 94.5)) < 2
    assert query["map"] == "similarity" and len(query["matrix"]) == 9 and query["matrix"][6:] == [0, 0, 1]
    assert math.dist(query["corners"][0], (query["x"], query["y"])) < 1e-3 and len(query["corners"]) == 4
    left, down = query["corners"][0], query["corners"][3]  # from the upper left corner clockwise
    assert math.dist((down[0] - left[0], down[1] - left[1]), (-query["b"] * 179, query["a"] * 179)) < 1e-2
    assert query["votes"] > query["most_votes"] > 5 and query["inliers"] <= query["covered"] and query["log10_chance"] < -3
    assert query["milliseconds"]["all"] > 0 and query["sorted"]["milliseconds"]["all"] > 0
PY
  done
  # The same votes both ways, and on both places.
  same() { grep -o '"\(votes\|most_votes\|items\|keys\)": [0-9]*,' "$1"; }
  cmp -s <(same shared.json) <(same global.json) || fail "$place: shared and global votes differ"
done

# A view from aside: half as wide again, which no similarity does.
/usr/bin/python3 - <<'PY'
pixels = open("reference.pgm", "rb").read().split(b"\n", 3)[3]
with open("aside.pgm", "wb") as file:
    file.write(b"P5\n240 180\n255\n" + bytes(pixels[y * 240 + 40 + x * 2 // 3] for y in range(180) for x in range(240)))
PY
for kind in auto affine perspective; do
  "$roost" match reference.pgm aside.pgm --map $kind --out aside --format json >aside.json 2>stderr || fail "--map $kind: $(cat aside.json stderr)"
  /usr/bin/python3 - aside.json "${kind/auto/affine}" <<'PY' || fail "--map $kind: $(cat aside.json)"
import json
import math
import sys

query = json.load(open(sys.argv[1]))["queries"][0]
assert query["matched"] and query["map"] == sys.argv[2] and "scale" not in query
for at, right in zip(query["corners"], ((40, 0), (199.3, 0), (199.3, 179), (40, 179))):
    assert math.dist(at, right) < 4, (at, right)
PY
  is_png aside/aside.png
done
"$roost" match reference.pgm aside.pgm --map similarity >stdout 2>stderr
code=$?
[[ $code -eq 3 ]] || fail "--map similarity: exit code $code, $(cat stdout stderr)"
"$roost" match reference.pgm aside.pgm >stdout 2>stderr || fail "aside: $(cat stdout stderr)"
grep -q "^aside: affine; corners at (" stdout || fail "aside: $(cat stdout)"

# No match is an answer with its own exit code.
for query in other.pgm flat.pgm dot.pgm; do
  "$roost" match reference.pgm $query "${small[@]}" >stdout 2>stderr
  code=$?
  [[ $code -eq 3 && ! -s stderr ]] || fail "$query: exit code $code, $(cat stderr)"
  grep -q "^${query%.pgm}: no match" stdout || fail "$query: $(cat stdout)"
done

# A board has many places.
awk 'BEGIN { print "P2\n240 180\n255"; for (y = 0; y < 180; ++y) for (x = 0; x < 240; ++x) print (int(x / 20) + int(y / 20)) % 2 ? 30 : 220 }' >board.pgm
"$roost" match board.pgm board.pgm "${small[@]}" >stdout 2>stderr
code=$?
[[ $code -eq 3 ]] || fail "a board: exit code $code, $(cat stderr)"
grep -q "^board: no match: [0-9]* placements are equally good" stdout || fail "a board: $(cat stdout)"

# A picture that is the same upside down has two.
/usr/bin/python3 - <<'PY'
pixels = open("reference.pgm", "rb").read().split(b"\n", 3)[3]
half = pixels[: 240 * 90]
open("around.pgm", "wb").write(b"P5\n240 180\n255\n" + half + half[::-1])
PY
"$roost" match around.pgm around.pgm "${small[@]}" --format json >stdout 2>stderr
code=$?
[[ $code -eq 3 ]] || fail "the same upside down: exit code $code, $(cat stderr)"
grep -q '"placements": 2' stdout || fail "the same upside down: $(cat stdout)"

# Pictures, of one and of a folder; a truth.
mkdir frames
cp turned.pgm farther.pgm other.pgm frames
awk 'BEGIN { d = 30 * 0.017453292519943295; a = 0.9 * cos(d); b = 0.9 * sin(d); print a, -b, 125.5 - a * 119.5 + b * 89.5, b, a, 85.5 - b * 119.5 - a * 89.5, 0, 0, 1 }' >truth
"$roost" match reference.pgm turned.pgm "${small[@]}" --out out --truth truth >stdout 2>stderr || fail "--out: $(cat stderr)"
grep -q "corners [01]\.[0-9]* pixels off" stdout || fail "--truth: $(cat stdout)"
is_png out/turned.png
[[ $(head -1 out/turned.votes.csv) == "basis,votes" ]] || fail "votes: $(head -2 out/turned.votes.csv)"
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then is_png out/turned.votes.png; fi
"$roost" match reference.pgm frames "${small[@]}" --out out >stdout 2>stderr
code=$?
[[ $code -eq 3 ]] || fail "a folder: exit code $code $(cat stderr)"
grep -q "^2 of 3 queries match; " stdout || fail "a folder: $(cat stdout)"
is_png out/sheet.png

# One of several queries that cannot be read: the others are matched.
head -c 3000 out/turned.png >frames/cut.png
"$roost" match reference.pgm frames text.pgm "${small[@]}" >stdout 2>stderr
[[ $? -eq 1 && ! -s stdout ]] || fail "a query that is not there: $(cat stdout stderr)"
"$roost" match reference.pgm frames turned.pgm "${small[@]}" --out out --format json >stdout 2>stderr
code=$?
[[ $code -eq 1 ]] || fail "a query that is cut off: exit code $code $(cat stderr)"
[[ $(wc -l <stderr) -eq 1 && $(cat stderr) == "roost: frames/cut.png: "* ]] || fail "a query that is cut off: $(cat stderr)"
/usr/bin/python3 - stdout <<'PY' || fail "a query that is cut off: $(cat stdout)"
import json
import sys

found = json.load(open(sys.argv[1]))
told = {q["name"]: (q["matched"], "error" in q) for q in found["queries"]}
assert told == {"cut": (False, True), "farther": (True, False), "other": (False, False), "turned": (True, False)}, told
assert len(found["queries"]) == 5 and found["summary"]["queries"] == 4 and found["summary"]["matched"] == 3
PY
rm frames/cut.png

# More queries than a sheet has room for.
mkdir many
/usr/bin/python3 - <<'PY'
pixels = open("turned.pgm", "rb").read().split(b"\n", 3)[3]
with open("corner.pgm", "wb") as file:
    file.write(b"P5\n80 60\n255\n" + b"".join(pixels[240 * y : 240 * y + 80] for y in range(60)))
PY
for i in {1..70}; do ln -s ../corner.pgm "many/$i.pgm"; done
code=0
"$roost" match reference.pgm many --k 12 --m 12 --out out >report 2>stderr || code=$?
((code == 0 || code == 3)) || fail "70 queries: exit code $code: $(cat stderr)"
is_png out/sheet.png

# A picture of 100 megapixels, in bounded memory: 48 x 48 pixels for one; and upside down, 24 x 24.
/usr/bin/python3 - <<'PY'
pixels = open("reference.pgm", "rb").read().split(b"\n", 3)[3]
for name, order, times in ("large", 1, 48), ("around", -1, 24):
    rows = [b"".join(bytes([v]) * times for v in pixels[i : i + 240]) for i in range(0, len(pixels), 240)]
    with open(name + ".pgm", "wb") as file:
        file.write(b"P5\n%d %d\n255\n" % (240 * times, 180 * times))
        for row in rows[::order]:
            file.write(row[::order] * times)
PY
(ulimit -v 1500000 && exec timeout 120 "$roost" match large.pgm around.pgm "${small[@]}" --place host --threads 2 >stdout 2>stderr) ||
  fail "100 megapixels: $? $(cat stderr stdout)"
grep -q "^around: scale \(2\.00\|1\.99\).., turn -\?1\(80.00\|79.99\) degrees, shift 115[12][0-9]\.. 86[34][0-9]\.." stdout || fail "100 megapixels: $(cat stdout)"
rm large.pgm around.pgm
printf 'P5\n20000 20000\n255\n' >huge.pgm
refused "^roost: huge.pgm: is a picture of 20000 x 20000 pixels; 268 million at most" match huge.pgm turned.pgm
refused "^roost: .*: is a pipe or a device" match reference.pgm <(cat turned.pgm)

# OpenCV, where it is there.
if /usr/bin/python3 -c 'import cv2' 2>/dev/null; then
  "$roost" match reference.pgm turned.pgm "${small[@]}" --against sift >stdout 2>stderr || fail "--against sift: $(cat stdout stderr)"
  grep -q "  SIFT: .* ms$" stdout || fail "--against sift: $(cat stdout)"
else
  refused "needs OpenCV; install python3-opencv" match reference.pgm turned.pgm "${small[@]}" --against sift --format json
  head -c 1000 /dev/zero >video.mp4
  refused "video.mp4: is not a picture; if it is a video, install python3-opencv" match reference.pgm video.mp4 "${small[@]}" --format json
fi

# Pictures that are read are not written over.
mkdir here
cp turned.pgm here/12:30.png
"$roost" match reference.pgm here/12:30.png "${small[@]}" --out out >stdout 2>stderr || fail "12:30.png: $(cat stderr)"
is_png out/12:30.png
mv here/12:30.png here/a.png
refused "^roost: here/a.png: is also an input and would be overwritten" match reference.pgm here/a.png "${small[@]}" --out here
mv here/a.png here/sheet.png
refused "^roost: here/sheet.png: is also an input" match reference.pgm farther.pgm here "${small[@]}" --out here
cmp -s turned.pgm here/sheet.png || fail "a query was written over"

# Bad input.
echo "no picture" >text.txt
: >empty.png
head -c 3000 out/turned.png >cut.png
mkdir folder
refused "^roost: text.txt: " match text.txt turned.pgm
refused "^roost: empty.png: is empty" match empty.png turned.pgm
refused "^roost: cut.png: cannot be read as a picture" match cut.png turned.pgm
refused "^roost: missing.png: .*no such file" match missing.png turned.pgm
refused "^roost: flat.pgm: has 0 points on its edges" match flat.pgm turned.pgm
refused "^roost: dot.pgm: has 0 points" match dot.pgm turned.pgm
refused "^roost: text.txt: is n" match reference.pgm text.txt "${small[@]}" --format json
refused "^roost: empty.png: is empty" match reference.pgm empty.png "${small[@]}" --format json
refused "^roost: missing.png: .*no such file" match reference.pgm missing.png
refused "^roost: folder: has no pictures" match reference.pgm folder
refused "text.txt: should have the nine numbers" match reference.pgm turned.pgm --truth text.txt
refused "share is 0; give a number from" match reference.pgm turned.pgm --share 0
refused "threshold is 300" match reference.pgm turned.pgm --threshold 300
for wrong in "--share nan" "--threshold nan" "--longest nan" "--units nan" "--longest inf" "--share -1"; do
  # shellcheck disable=SC2086
  refused "^roost: match: ${wrong% *} is .*; give a number from" match reference.pgm turned.pgm $wrong
done
refused "seed" match reference.pgm turned.pgm --seed 18446744073709551616
echo 1 2 3 2 4 6 0 0 1 >singular
refused "is not a homography" match reference.pgm turned.pgm --truth singular
refused "^roost: match: --longest is 0.1; give a number from 0.13 to 1$" match reference.pgm turned.pgm --longest 0.1
refused "units" match reference.pgm turned.pgm --units 31
refused "k" match reference.pgm turned.pgm --k 2
refused "votes" match reference.pgm turned.pgm --votes some
refused "map" match reference.pgm turned.pgm --map some
refused "required" match reference.pgm
refused "is not a directory" match reference.pgm turned.pgm --out text.txt/out
if ((EUID != 0)); then
  mkdir -m 000 closed
  refused "^roost: closed/out: is not a directory and cannot be made one" match reference.pgm turned.pgm --out closed/out
  rmdir closed
fi

finish
