#!/bin/bash
# No command writes over a file that it reads, whatever the file is called: every option that names an output, with
# every input.
# Usage: outputs_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

# kept FILE OUTPUT ARGUMENT...: roost refuses to write OUTPUT, which is FILE, also where a link of that name leads to it
# (soft or hard), and leaves the file as it is.
kept() {
  local file=$1 output=$2 way
  shift 2
  [[ $output -ef $file ]] || { fail "$output is not $file" && return; }
  cp "$file" before
  for way in same soft hard; do
    if [[ $way != same ]]; then
      [[ ! -L $output ]] || continue
      mv "$file" moved
      [[ $way == soft ]] && ln -s "$PWD/moved" "$file"
      [[ $way == hard ]] && ln moved "$file"
    fi
    refused "^roost: $output: is also an input and would be overwritten; name a different output" "$@"
    cmp -s "$file" before || fail "$*: $file was written over"
    [[ $way == same ]] || { rm -f "$file" && mv moved "$file"; }
  done
}
printf 'id,x\n1,2\n' >a.csv
printf 'id,y\n1,3\n' >b.csv
printf '1 2 3\n4 5 6\n' >p.xyz
cp "$data/cube.obj" m.obj
cp "$data/cube.obj" n.obj
host=(--place host --threads 1)
kept a.csv a.csv unique a.csv -o a.csv "${host[@]}"
kept a.csv ./a.csv unique a.csv --column id --output ./a.csv "${host[@]}"
kept a.csv ./a.csv join a.csv b.csv --on id -o ./a.csv "${host[@]}"
kept b.csv b.csv join a.csv b.csv --on id --out b.csv "${host[@]}"
kept p.xyz ./p.xyz lidar p.xyz --reps 0 --picture ./p.xyz "${host[@]}"
for command in "unique -" "join - b.csv --on id" "join b.csv - --on id"; do
  # shellcheck disable=SC2086,SC2094
  "$roost" $command -o a.csv "${host[@]}" <a.csv 2>stderr && fail "$command wrote over standard input"
  grep -q "^roost: a.csv: is also an input" stderr || fail "$command: $(cat stderr)"
done

# An output that is an open file takes the rows behind what others have written there; - is standard output.
for name in /dev/stdout /dev/fd/1 /proc/self/fd/1 -; do
  (echo before && "$roost" unique a.csv -c id -o $name "${host[@]}" && echo after) >told
  [[ $(<told) == before$'\n'*1*$'\n'after ]] || fail "-o $name: $(<told)"
  "$roost" join a.csv b.csv --on id -o $name "${host[@]}" >>told
  [[ $(<told) == before$'\n'*after$'\n'id,x,y$'\n'1,2,3 ]] || fail "join -o $name: $(<told)"
done
"$roost" unique a.csv -c id -o /dev/stderr "${host[@]}" 2>told && grep -q "1 1$" told || fail "-o /dev/stderr: $(<told)"
refused "^roost: /dev/fd/77: cannot be written" unique a.csv -o /dev/fd/77 "${host[@]}"
[[ ! -e - ]] || fail "a file is called -"
refused "name is empty" unique a.csv -o "" "${host[@]}"
refused "not compressed here; leave --output out and add: | gzip >FILE.gz" unique a.csv -o o.csv.gz
refused "not compressed here.* zstd" join a.csv b.csv --on id -o o.zst
refused "CSV, whatever its name" unique a.csv -o o.xlsx
refused "leave out --format uniq" unique a.csv -c id --sum x --format uniq

# Solids: each export, each mesh, the pictures, and what the slices of a folder are called.
for ending in .ply .points.ply .binvox .vox; do
  printf 'ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n' >"s$ending"
  kept "s$ending" "./s$ending" voxels "s$ending" sphere --grid 8 --export "./s$ending" "${host[@]}"
  kept "s$ending" "s$ending" voxels box m.obj "s$ending" --grid 8 --export t.vox --export "s$ending" "${host[@]}"
done
mkdir -p out slices
for name in out/voxels.png out/voxels.csv out/voxels-time.png slices/z03.png slices/z0.png; do cp s.ply "$name"; done
kept out/voxels.png out/voxels.png voxels out/voxels.png --grid 8 --out out "${host[@]}"
kept out/voxels.png ./out/voxels.png voxels out/voxels.png sphere --grid 8 --out ./out "${host[@]}"
kept out/voxels.csv out/voxels.csv voxels out/voxels.csv --sweep --grid 32 --out out "${host[@]}"
kept out/voxels-time.png out/voxels-time.png voxels out/voxels-time.png --sweep --grid 32 --out out "${host[@]}"
kept slices/z0.png slices/z0.png voxels slices/z0.png --op union --grid 8 --export slices/ "${host[@]}"
kept slices/z03.png slices/z03.png voxels m.obj slices/z03.png --grid 11 --export slices/ "${host[@]}"
mkdir film
cp m.obj film/1.obj
ln -s ../film/1.obj out/frames.png
kept film/1.obj out/frames.png voxels film --frames 2 --grid 8 --out out "${host[@]}"

# Stars and pictures. The other files of `stars solve` and `match` have tests of their own.
printf 'ra,dec,magnitude\n' >sky.csv
kept sky.csv ./sky.csv stars build sky.csv --out ./sky.csv "${host[@]}"
/usr/bin/python3 - <<'PY'
with open("q.pgm", "wb") as f:
    f.write(b"P5\n64 48\n255\n" + bytes((x // 7 * 37 + y // 5 * 91 + x // 7 * (y // 5) * 53) % 256 for y in range(48) for x in range(64)))
PY
mkdir found
cp q.pgm found/r.png
cp q.pgm found/sheet.png
echo 1 0 0 0 1 0 0 0 1 >found/q.votes.csv
kept found/r.png found/r.png match found/r.png found/r.png --out found "${host[@]}"
kept found/q.votes.csv found/q.votes.csv match q.pgm q.pgm --truth found/q.votes.csv --out found "${host[@]}"
kept found/sheet.png found/sheet.png match found/sheet.png q.pgm q.pgm --out found "${host[@]}"
kept found/sheet.png found/sheet.png match q.pgm q.pgm found/sheet.png --out found "${host[@]}"

# What no input is may be replaced.
"$roost" unique a.csv -o b.csv "${host[@]}" || fail "another output was refused"

finish
