#!/bin/bash
# roost stars: fields of a sky of random stars, pictures of it, and one line on stderr for what is wrong.
# Usage: stars_test.sh PATH_OF_ROOST
# shellcheck disable=SC2016  # fields of awk
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
export LC_ALL=C

places=(host)
"$roost" info | grep -q '^cuda [0-9]' && places+=(cuda)

# A catalogue of 20000 stars all over the sky.
awk 'BEGIN {
  srand(1)
  print "ra,dec,magnitude,name"
  for (i = 0; i < 20000; ++i) {
    z = 2 * rand() - 1
    printf "%.6f,%.6f,%.3f,star %d\n", 360 * rand(), atan2(z, sqrt(1 - z * z)) * 57.29577951308232, 9 + 0.9 * log(rand() + 1e-6), i
  }
}' >catalogue.csv

# field RA DEC ROLL FOV WIDTH HEIGHT: what a camera sees of the catalogue, the brightest first.
field() {
  sort -t, -k3,3g catalogue.csv | awk -F, -v ra="$1" -v dec="$2" -v roll="$3" -v fov="$4" -v w="$5" -v h="$6" '
    BEGIN {
      d = 0.017453292519943295
      focal = w / 2 / (sin(fov * d / 2) / cos(fov * d / 2))
      print "x,y,brightness"
    }
    $1 + 0 == $1 && n < 40 {
      a = ($1 - ra) * d
      away = sin(dec * d) * sin($2 * d) + cos(dec * d) * cos($2 * d) * cos(a)
      if (away < 0.8) next
      east = cos($2 * d) * sin(a) / away
      north = (cos(dec * d) * sin($2 * d) - sin(dec * d) * cos($2 * d) * cos(a)) / away
      x = w / 2 + focal * (-east * cos(roll * d) - north * sin(roll * d))
      y = h / 2 + focal * (east * sin(roll * d) - north * cos(roll * d))
      if (x > 0 && y > 0 && x < w && y < h) { printf "%.3f,%.3f,%.2f\n", x, y, exp(-0.92 * $3) * 1e6; ++n }
    }'
}

for place in "${places[@]}"; do
  "$roost" stars build catalogue.csv --out "$place.sky" --fov 10:16 --place "$place" >stdout 2>stderr || fail "build on $place: $(cat stderr)"
  grep -q "patterns of 20000 stars to magnitude" stdout || fail "build on $place: printed $(cat stdout)"
done

# Where fields point: also at a pole, and on both sides of 0 h.
mkdir fields
truth=("120 30 0" "0.01 -20 90" "359.99 5 200" "77 89.9 45" "200 -90 0" "15 -45 333.3")
for i in "${!truth[@]}"; do
  # shellcheck disable=SC2086
  field ${truth[i]} 12.5 1024 768 >"fields/f$i.csv"
done
for place in "${places[@]}"; do
  for sky in "${places[@]}"; do
    "$roost" stars solve "$sky.sky" fields/*.csv --size 1024x768 --format csv --place "$place" >"answers.$place.$sky" 2>stderr || fail "solve on $place: $(cat stderr)"
    cut -d, -f1-6 "answers.$place.$sky" | cmp -s - <(cut -d, -f1-6 answers.host.host) || fail "$place with the database of $sky has other answers than the host: $(diff "answers.$place.$sky" answers.host.host)"
  done
done
[[ $(head -1 answers.host.host) == "name,ra_deg,dec_deg,roll_deg,fov_deg,matched,rms_px,log10_chance,mirrored,scale_arcsec_px,hinted,reason" ]] || fail "columns: $(head -1 answers.host.host)"
for i in "${!truth[@]}"; do
  read -r ra dec roll <<<"${truth[i]}"
  awk -F, -v ra="$ra" -v dec="$dec" -v roll="$roll" -v name="f$i" '
    function off(a, b, o) { o = (a - b + 540) % 360 - 180; return o < 0 ? -o : o }
    $1 == name {
      polar = dec * dec > 89.95 * 89.95  # right ascension and roll mean nothing there
      good = $2 != "" && off($3, dec) < 0.002 && (polar || (off($2, ra) * cos(dec * 0.0174533) < 0.002 && (off($4, roll) < 0.05 || dec > 89))) && off($5, 12.5) < 0.01 && $6 > 20
    }
    END { exit !good }' answers.host.host || fail "f$i: not at ${truth[i]}: $(grep "^f$i," answers.host.host)"
done

# No solution is an answer with its own exit code, and an empty line of the table; the others keep theirs.
printf 'x,y,brightness\n' >empty.csv
printf 'x,y\n10,10\n500,20\n300,700\n' >three.csv
awk 'BEGIN { srand(5); print "x,y"; for (i = 0; i < 100000; ++i) printf "%.2f,%.2f\n", rand() * 1024, rand() * 768 }' >hot.csv
"$roost" stars solve host.sky empty.csv fields/f0.csv three.csv hot.csv --size 1024x768 --format csv --place host >stdout 2>stderr
[[ $? -eq 3 && ! -s stderr ]] || fail "no solution: exit code $(cat stderr)"
[[ $(grep -c ',,,,,,,,,,,no solution ([0-9]* centroids)$' stdout) -eq 3 && $(grep -c '^f0,119.99\|^f0,120.00' stdout) -eq 1 ]] || fail "no solution: $(cat stdout)"
"$roost" stars solve host.sky empty.csv --size 1024x768 >stdout 2>stderr
[[ $? -eq 3 && $(cat stdout) == "empty: no solution (0 centroids)" ]] || fail "no solution as text: $(cat stdout stderr)"

# A picture of the sky, as PGM; headers; a mirrored and a turned picture.
picture() { # FIELD TRANSFORM
  awk -F, -v t="$2" 'NR > 1 {
      x = t == "mirrored" ? 1024 - $1 : t == "turned" ? 1024 - $1 : $1
      y = t == "turned" ? 768 - $2 : $2
      for (j = -4; j <= 4; ++j) for (i = -4; i <= 4; ++i) {
        c = int(x) + i; r = int(y) + j
        if (c < 0 || r < 0 || c > 1023 || r > 767) continue
        dx = c + 0.5 - x; dy = r + 0.5 - y
        p[r * 1024 + c] += 60 * log(2 + $3 / 100) * exp(-(dx * dx + dy * dy) / 3)
      }
    }
    END {
      srand(3)
      printf "P5\n1024 768\n255\n"
      for (k = 0; k < 1024 * 768; ++k) { v = int(20 + 3 * rand() + p[k]); printf "%c", (v > 255 ? 255 : v) }
    }' "$1"
}
for how in plain mirrored turned; do
  picture fields/f0.csv $how >$how.pgm
  "$roost" stars solve host.sky $how.pgm --out out --place host >stdout 2>stderr || fail "picture, $how: $? $(cat stdout stderr)"
  grep -q "ra 1[12][90]\.[09][09]" stdout || fail "picture, $how: $(cat stdout)"
  [[ $(grep -c mirrored stdout) -eq 1 || $how != mirrored ]] || fail "picture: not mirrored: $(cat stdout)"
  [[ $(head -c 9 out/$how.wcs) == "SIMPLE  =" ]] || fail "picture, $how: no FITS header"
  /usr/bin/python3 - out/$how.wcs out/$how.stars.csv <<'PY' || fail "picture, $how: the header leads elsewhere than the stars"
import csv
import math
import sys

# The gnomonic projection of the header, as FITS defines it: the first pixel's middle is at 1.
cards = open(sys.argv[1], "rb").read().decode("ascii")
cards = [cards[i : i + 80] for i in range(0, len(cards), 80)]
head = {c[:8].strip(): c[10:].split("/")[0].strip(" '") for c in cards if c[8:10] == "= "}
assert head["CTYPE1"] == "RA---TAN" and head["CTYPE2"] == "DEC--TAN"
assert float(head["LONPOLE"]) == 180  # FITS has another default where CRVAL2 is 90
(crval1, crval2, crpix1, crpix2, a, b, c, d) = (
    float(head[key]) for key in ("CRVAL1", "CRVAL2", "CRPIX1", "CRPIX2", "CD1_1", "CD1_2", "CD2_1", "CD2_2"))
stars = [row for row in csv.DictReader(open(sys.argv[2])) if row["ra_deg"]]
assert len(stars) > 10
for star in stars:
    x, y = float(star["x"]) + 0.5 - crpix1, float(star["y"]) + 0.5 - crpix2
    xi, eta = math.radians(a * x + b * y), math.radians(c * x + d * y)
    middle = math.radians(crval2)
    away = math.cos(middle) - eta * math.sin(middle)
    ra = crval1 + math.degrees(math.atan2(xi, away))
    dec = math.degrees(math.atan2(math.sin(middle) + eta * math.cos(middle), math.hypot(xi, away)))
    off = math.hypot((ra - float(star["ra_deg"])) * math.cos(math.radians(dec)), dec - float(star["dec_deg"]))
    pixels = off / math.sqrt(abs(a * d - b * c))
    assert pixels < 2 and abs(pixels - math.hypot(float(star["dx_px"]), float(star["dy_px"]))) < 0.1, (star, pixels)
PY
  [[ $(head -1 out/$how.stars.csv) == "x,y,ra_deg,dec_deg,magnitude,name,dx_px,dy_px" && $(grep -c ",star [0-9]*," out/$how.stars.csv) -gt 10 ]] || fail "picture, $how: $(head -3 out/$how.stars.csv)"
done
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  "$roost" stars solve host.sky plain.pgm --out out --pictures --place host >stdout 2>stderr || fail "--pictures: $(cat stderr)"
  [[ $(head -c 8 out/plain.png 2>/dev/null | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "out/plain.png is no PNG"
  mkdir -p blocked/plain.png
  "$roost" stars solve host.sky plain.pgm --out blocked --pictures --place host >stdout 2>stderr
  [[ $(wc -l <stderr) -eq 1 && $(cat stderr) == "plot: blocked/plain.png: cannot be written"* ]] || fail "a picture in the way: $(cat stderr)"
fi

# Nothing that is read is written over, and no answer over another.
mkdir here
cp plain.pgm here/plain.png
cp fields/f0.csv here
refused "^roost: here/plain.png: is also an input and would be overwritten" stars solve host.sky here/plain.png --out here --pictures
refused "^roost: out/f0.stars.csv: would be written twice" stars solve host.sky fields/f0.csv here/f0.csv --size 1024x768 --out out

# Bad catalogues. No database is left.
refused_catalogue() { # WORDS FILE ARGUMENT...
  local words=$1
  shift
  refused "^roost: .*$words" stars build "$@" --out none.sky
  [[ ! -e none.sky ]] || fail "stars build $*: left a database"
}
printf 'ra,magnitude\n1,2\n' >no_dec.csv
printf 'ra,dec,magnitude\n1,2,3\n4,north,6\n' >words.csv
printf 'ra,dec,magnitude\n1,2,3\n' >one.csv
{ echo ra,dec,magnitude; for i in 0 90 180 270; do echo $i,0,1; done; } >far.csv
printf 'GDR3\1\0\0\0\377\377\377\377\377\377\377\377' >cut.bin
printf 'ra,dec,magnitude\n1,2\n' >short.csv
refused_catalogue "short.csv: line 2 has 2 fields and the header 3; correct it$" short.csv
refused_catalogue "no_dec.csv: has no column for the declination; it has 'ra', 'magnitude'" no_dec.csv
refused_catalogue "words.csv: row 2 has the declination 'north'" words.csv
refused_catalogue "one.csv: has 1 stars" one.csv
refused_catalogue "far.csv: no four stars lie in one picture" far.csv
refused_catalogue "cut.bin: should have" cut.bin
refused_catalogue "missing.csv: .*no such file" missing.csv
refused_catalogue "plain.pgm: " plain.pgm
refused_catalogue "--fov 0:10" catalogue.csv --fov 0:10
refused_catalogue "--fov 20:10" catalogue.csv --fov 20:10
refused_catalogue "--fov wide" catalogue.csv --fov wide
refused_catalogue "epoch nan" catalogue.csv --epoch nan
refused "^roost: .*catalogue.csv: is also an input" stars build catalogue.csv --out catalogue.csv

# Catalogues that are not what their columns say are noticed, and those that say what they are, are read.
recast() { # HEAD AWK_FIELDS: catalogue.csv with other columns
  echo "$1"
  awk -F, -v pi=3.141592653589793 'NR > 1 { print '"$2"' }' OFS=, catalogue.csv
}
recast ra,dec,magnitude '$1 / 15, $2, $3' >hours.csv
recast ra,dec,magnitude '$1 * pi / 180, $2 * pi / 180, $3' >radians.csv
recast ra,dec,magnitude '$1 * pi / 180, $2, $3' >half.csv
recast ra,dec,magnitude '$1, $2 * pi / 180, $3' >other_half.csv
recast ra,dec,magnitude '$2, $1, $3' >swapped.csv
recast ra,dec,magnitude '$3, $2, $1' >no_magnitude.csv
recast ra,dec,magnitude '$1 * 3600, $2, $3' >seconds.csv
recast ra,dec,magnitude '$1 - 360 * (NR % 2), $2, $3' >turns.csv
recast ra_hours,dec,magnitude '$1, $2, $3' >no_hours.csv
recast ra,dec,magnitude,pmra,pmdec,epoch '$1, $2, $3, 1, 1, 2451545' >days.csv
recast ra,dec,magnitude,pmra,pmdec '$1, $2, $3, 123456, 1' >fast.csv
recast ra,dec,magnitude 'int($1 / 15) ":" 12 ":" 7.2, $2, $3' >sexagesimal.csv
recast RAh,RAm,RAs,dec,magnitude '3, 4, 5, $2, $3' >split.csv
recast ra,Ra,dec,magnitude '$1, $1, $2, $3' >twice.csv
recast ra,decrad,magnitude '$1, $2 * pi / 180, $3' >mixed.csv
sed 1d catalogue.csv >headless.csv
awk -F, 'NR == 1 || ($1 > 4 && $1 < 6.5 && $2 > 0 && $2 < 40)' OFS=, hours.csv >part.csv
refused_catalogue "hours.csv: .* right ascensions from .* to 2[34].* look like hours; .*--units" hours.csv
refused_catalogue "part.csv: .* look like hours" part.csv
refused_catalogue "radians.csv: .* look like radians" radians.csv
refused_catalogue "half.csv: .* look like right ascensions in radians" half.csv
refused_catalogue "other_half.csv: .* look like declinations in radians" other_half.csv
refused_catalogue "swapped.csv: [0-9]* of 20000 positions are not on the sky" swapped.csv
refused_catalogue "seconds.csv: [0-9]* of 20000 positions are not on the sky" seconds.csv
refused_catalogue "turns.csv: .*not on the sky\|turns.csv: .*more than a turn" turns.csv
refused_catalogue "no_hours.csv: [0-9]* of 20000 positions are not on the sky in hours" no_hours.csv
refused_catalogue "catalogue.csv: .* positions are not on the sky in radians" catalogue.csv --units radians
refused_catalogue "no_magnitude.csv: [0-9]* of 20000 numbers in the column of the magnitudes" no_magnitude.csv
refused_catalogue "days.csv: row 1 has the epoch" days.csv
refused_catalogue "fast.csv: row 1 has the proper motion" fast.csv
refused_catalogue "sexagesimal.csv: row 1 has the right ascension .*degrees" sexagesimal.csv
refused_catalogue "split.csv: has no column for the right ascension\|split.csv: has the right ascension in several" split.csv
refused_catalogue "twice.csv: has the columns 'ra' and 'Ra'" twice.csv
refused_catalogue "mixed.csv: has radians for one coordinate" mixed.csv
refused_catalogue "headless.csv: .*names of the columns\|headless.csv: has no column" headless.csv
refused_catalogue "magnitude nan" catalogue.csv --magnitude nan
recast ra_hours,dec,magnitude '$1 / 15, $2, $3' >good1.csv
recast ra,dec,rarad,decrad,mag '$1 / 15, $2, $1 * pi / 180, $2 * pi / 180, $3' >good2.csv  # as HYG has it
recast _RAJ2000,_DEJ2000,Vmag '$1 - 360 * ($1 > 180), $2, $3' >good3.csv
recast ra,dec,magnitude '$1, $2, $3' | tr , ';' | sed '2,$s/\./,/g' >good4.csv
cp hours.csv good5.csv
awk -F, 'NR > 1 { printf "%6d %8s%13.10f %13.10f %9s%8.2f %8.2f%61s%7.4f%140s\n", NR, "", $1 * 0.0174532925199433,
  $2 * 0.0174532925199433, "", 0, 0, "", $3, "" }' catalogue.csv >good6.csv # the columns of the Hipparcos catalogue
for n in 1 2 3 4 5 6; do
  # shellcheck disable=SC2046
  "$roost" stars build good$n.csv --out good.sky --fov 10:16 --place host $([[ $n -eq 5 ]] && echo --units hours) >stdout 2>stderr || fail "good$n.csv: $(cat stderr)"
  "$roost" stars solve good.sky fields/*.csv --size 1024x768 --format csv --place host 2>&1 | cut -d, -f1-4 >answers.good
  awk -F, 'function off(a, b, o) { o = (a - b + 540) % 360 - 180; return o < 0 ? -o : o }
    NR == FNR { ra[$1] = $2; dec[$1] = $3; next }
    FNR > 1 { if (off($3, dec[$1]) > 1e-3 || off($2, ra[$1]) * cos($3 * 0.0174533) > 1e-3) bad = 1; ++n }
    END { exit bad || n != 6 }' answers.host.host answers.good || fail "good$n.csv: $(cat answers.good)"
done
# The Sun, which HYG lists, is no star; nor is 99.99 a magnitude, or a blank, or infinity a declination. Of stars that come
# twice nothing changes.
{ cat catalogue.csv; echo "0,0,-26.7,Sun"; echo "120,30,99.99,"; echo "5,inf,3,"; echo "6,7, ,"; } >sun.csv
"$roost" stars build sun.csv --out good.sky --fov 10:16 --place host >stdout 2>stderr
[[ $? -eq 0 && $(cat stderr) == "roost: sun.csv: left out 4 stars without a position or a magnitude" ]] || fail "sun.csv: $(cat stdout stderr)"
cmp -s good.sky host.sky || fail "sun.csv: another database"

# A database of roost 0.2.0, of 140 stars.
gzip -dc "$root/tests/files/0.2.0/sky.stars.gz" >old.sky
for place in "${places[@]}"; do
  "$roost" stars solve old.sky "$root/tests/files/0.2.0/field.csv" --size 1024x768 --format csv --place "$place" >stdout 2>stderr
  [[ $(tail -1 stdout) == field,120.00000,30.00000,10.0000,50.99999,9,* ]] || fail "a database of 0.2.0 on $place: $(cat stdout stderr)"
done

# Bad databases and fields.
head -c 100000 host.sky >cut.sky
{ head -c 16 host.sky; printf '\2'; tail -c +18 host.sky; } >other.sky
: >nothing.sky
refused "^roost: cut.sky: was cut off" stars solve cut.sky fields/f0.csv --size 1024x768
refused "^roost: other.sky: .*damaged" stars solve other.sky fields/f0.csv --size 1024x768
refused "^roost: nothing.sky: is not a database of .roost stars build.$" stars solve nothing.sky fields/f0.csv --size 1024x768
refused "^roost: catalogue.csv: is not a database of" stars solve catalogue.csv fields/f0.csv --size 1024x768
refused "^roost: missing.sky: cannot be read" stars solve missing.sky fields/f0.csv --size 1024x768
refused "f0.csv: is not a picture.*--size" stars solve host.sky fields/f0.csv
refused "f0.csv: row .* outside of a picture of 640 x 480" stars solve host.sky fields/f0.csv --size 640x480
refused "host.sky: is for pictures 10 to 16 degrees wide" stars solve host.sky fields/f0.csv --size 1024x768 --fov 1:2
refused "catalogue.csv: has no column for the place from the left edge; it has 'ra', 'dec'" stars solve host.sky catalogue.csv --size 1024x768
refused "missing.png: .*no such file" stars solve host.sky missing.png
refused "size 10x10" stars solve host.sky fields/f0.csv --size 10x10
refused "size big" stars solve host.sky fields/f0.csv --size big
refused "chance of 0" stars solve host.sky fields/f0.csv --size 1024x768 --chance 0
refused "fov 5:4" stars solve host.sky fields/f0.csv --size 1024x768 --fov 5:4
refused "required" stars solve host.sky
refused "--pictures requires --out" stars solve host.sky plain.pgm --pictures
refused "a command is missing; commands: build, solve" stars
head -c 5000 out/plain.png >cut.png 2>/dev/null && "$roost" stars solve host.sky cut.png >stdout 2>stderr && fail "a picture that was cut off was solved"
head -c 4000 out/plain.wcs >no_picture.fits
refused "no_picture.fits: " stars solve host.sky no_picture.fits
# A file that cannot be read does not keep others from their answers.
cp fields/f0.csv 'a,"b".csv'
"$roost" stars solve host.sky no_picture.fits 'a,"b".csv' missing.png empty.csv --size 1024x768 --format csv --place host >stdout 2>stderr
[[ $? -eq 1 && $(wc -l <stderr) -eq 2 && $(wc -l <stdout) -eq 5 ]] || fail "a batch with bad files: $(cat stdout stderr)"
grep -q '^no_picture,,,,,,,,,,,.*no_picture.fits: ' stdout && grep -q '^missing,.*no such file' stdout || fail "a batch with bad files, reasons: $(cat stdout)"
grep -q '^"a,""b""",1[12][09]\.[09]*.*,false,' stdout || fail "a batch with bad files, names: $(cat stdout)"
"$roost" stars solve host.sky no_picture.fits 'a,"b".csv' --size 1024x768 --format json --place host 2>/dev/null |
  /usr/bin/python3 -c 'import json, sys; a, b = json.load(sys.stdin)["fields"]; assert "error" in a and not a["solved"] and b["name"] == "a,\"b\"" and b["solved"] and b["mirrored"] is False, (a, b)' || fail "a batch with bad files as JSON"

# A hint where the field points comes before the whole sky, and a limit ends the search.
for near in 120,30,0 119.5,30.5,1.5 120,30,360; do
  "$roost" stars solve host.sky fields/f0.csv --size 1024x768 --format csv --place host --near "$near" --limit 0 >stdout 2>stderr || fail "--near $near: $(cat stdout stderr)"
  cmp -s <(sed 1d stdout | cut -d, -f2,3) <(grep ^f0 answers.host.host | cut -d, -f2,3) || cut -d, -f2,3 stdout | grep -q '^1\(19.999\|20.000\)[0-9]*,\(29.999\|30.000\)' || fail "--near $near: $(cat stdout)"
  grep -q '^f0,.*,true,$' stdout || fail "--near $near: not by the hint: $(cat stdout)"
done
"$roost" stars solve host.sky fields/f0.csv --size 1024x768 --place host --near 90,30,0 >stdout 2>stderr || fail "--near elsewhere: $(cat stderr)"
grep -q "^f0: ra 1[12][09].*chance 10^-[0-9]*$" stdout || fail "--near elsewhere: $(cat stdout)"
"$roost" stars solve host.sky fields/f0.csv --size 1024x768 --place host --near 90,30,0 --limit 0 >stdout 2>stderr
[[ $? -eq 3 && $(cat stdout) == "f0: no solution by the hint (40 centroids)" ]] || fail "--near elsewhere alone: $(cat stdout stderr)"
awk 'BEGIN { srand(6); print "x,y"; for (i = 0; i < 60; ++i) printf "%.2f,%.2f\n", rand() * 1024, rand() * 768 }' >random.csv
"$roost" stars solve host.sky random.csv --size 1024x768 --format json --place host --limit 5000 >stdout 2>stderr
[[ $? -eq 3 ]] && grep -q '"reason": "no solution within the limit of 5000 patterns (60 centroids)"' stdout || fail "--limit: $(cat stdout stderr)"
for place in "${places[@]}"; do
  for limit in 0 700 20000; do
    "$roost" stars solve host.sky fields/*.csv random.csv --size 1024x768 --format csv --place "$place" --near 120.4,30,0 --limit $limit >"limited.$place.$limit" 2>stderr
    cut -d, -f1-6,11,12 "limited.$place.$limit" | cmp -s - <(cut -d, -f1-6,11,12 "limited.host.$limit") || fail "$place at limit $limit: $(diff "limited.$place.$limit" "limited.host.$limit")"
  done
done
refused "near 1,2" stars solve host.sky fields/f0.csv --size 1024x768 --near 1,2
refused "near 1,99,3" stars solve host.sky fields/f0.csv --size 1024x768 --near 1,99,3
refused "near 1,2,3,4" stars solve host.sky fields/f0.csv --size 1024x768 --near 1,2,3,4
refused "near a,b,c" stars solve host.sky fields/f0.csv --size 1024x768 --near a,b,c
refused "radius 11" stars solve host.sky fields/f0.csv --size 1024x768 --near 1,2,3 --radius 11
refused "radius 0" stars solve host.sky fields/f0.csv --size 1024x768 --near 1,2,3 --radius 0

# Rows that are no centroids are left out, and said to be.
{ cat fields/f0.csv; printf -- '-0.4,5,1\n1024.5,3,1\nnan,nan,nan\n,,\n7,8\n'; } >spoiled.csv
"$roost" stars solve host.sky spoiled.csv --size 1024x768 --format csv --place host >stdout 2>stderr
[[ $? -eq 0 && $(grep -c "left out 4 of 44 rows; the first: row 41 is at -0.4" stderr) -eq 1 && $(grep -c "left out 1 bad line" stderr) -eq 1 ]] || fail "rows that are no centroids: $(cat stdout stderr)"
cmp -s <(sed 1d stdout | cut -d, -f2-) <(grep ^f0 answers.host.host | cut -d, -f2-) || fail "rows that are no centroids: $(cat stdout)"
# So are many at the edges, and a few that are farther away; many of those belong to another picture.
{ cat fields/f0.csv; printf -- '-0.5,%d,1\n' {1..9}; printf '1100,%d,1\n' 1 2; } >edges.csv
"$roost" stars solve host.sky edges.csv --size 1024x768 --format csv --place host >stdout 2>stderr
[[ $? -eq 0 && $(cat stderr) == "roost: edges.csv: left out 11 of 51 rows; the first: row 41 is at -0.5, 1,"* ]] || fail "rows at the edges: $(cat stdout stderr)"
cmp -s <(sed 1d stdout | cut -d, -f2-) <(grep ^f0 answers.host.host | cut -d, -f2-) || fail "rows at the edges: $(cat stdout)"
printf 'x,y\n1,2,3\n4,5,6\n' >ragged.csv
printf 'x;y;mag\n1,5;2,5;3\n4.5;5.5;6\n' >marks.csv
printf 'x,y\na,b\nc,d\n' >letters.csv
refused "ragged.csv: line 2 has .* fields\? and the header [0-9]*; correct it$" stars solve host.sky ragged.csv --size 1024x768
refused "marks.csv: .*decimal points and others with decimal commas" stars solve host.sky marks.csv --size 1024x768
refused "letters.csv: row 1 has 'a'" stars solve host.sky letters.csv --size 1024x768
# Leaves brighter than all stars, below: by the stars above them.
{ echo x,y,brightness; sed 1d fields/f0.csv; awk 'BEGIN { srand(2); for (i = 0; i < 300; ++i) printf "%.2f,%.2f,%.1f\n", rand() * 1024, 600 + 160 * rand(), 1e9 + rand() }'; } >leaves.csv
"$roost" stars solve host.sky leaves.csv --size 1024x768 --format csv --place host >stdout 2>stderr
grep -q "^leaves,1[12][09]\.99\|^leaves,120\.0" stdout || fail "leaves: $(cat stdout stderr)"
touch file
refused "is not a directory" stars solve host.sky fields/f0.csv --size 1024x768 --out file/out

finish
