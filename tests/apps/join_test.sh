#!/bin/bash
# roost join and roost unique: the answers of coreutils and awk, fields of all kinds, and one line on stderr for what is wrong.
# Usage: join_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
export LC_ALL=C

# A part of the host's memory stands for that of a GPU, and all that waits goes to a file.
limited=(--place host --threads 2 --limit 6MiB --spill . --host-limit 0)
places=(host)
"$roost" info | grep -q '^cuda [0-9]' && places+=(cuda)

# same NAME EXPECTED COMMAND...: the command does well without a word, and prints what the file EXPECTED holds.
same() {
  local name=$1 expected=$2
  shift 2
  timeout 120 "$@" >stdout 2>stderr || fail "$name: exit code $?: $(cat stderr)"
  [[ ! -s stderr ]] || fail "$name: stderr has $(cat stderr)"
  cmp -s stdout "$expected" || fail "$name: not as expected: $(diff stdout "$expected" | head -5)"
}

# in_order KIND A B: what a join of two tables by their first columns is, row by row; for tables without quotes.
in_order() {
  awk -F, -v OFS=, -v kind="$1" '
    function rest() { return substr($0, length($1) + 1) }
    { key = FNR == 1 ? "header" SUBSEP : $1 }
    FNR == NR { match_of[key, ++times[key]] = rest(); blank = rest(); next }
    key in times {
      n = kind == "anti" && FNR > 1 ? 0 : kind == "inner" || kind == "left" ? times[key] : 1
      for (i = 1; i <= n; ++i) print $0 (kind == "inner" || kind == "left" ? match_of[key, i] : "")
      next
    }
    kind == "left" { gsub(/[^,]/, "", blank); print $0 blank }
    kind == "anti"' "$3" "$2"
}

# rows FILE: without its header, sorted.
rows() {
  tail -n +2 "$1" | sort
}

# expect_joins NAME A B: all kinds of join are right, by awk in order, and by coreutils.
expect_joins() {
  local name=$1 a=$2 b=$3 place kind
  for kind in inner left semi anti; do
    in_order $kind "$a" "$b" | sed -E '1s/(,text|,y|,none)(.*)(,text|,y|,none)$/\1\2\3_right/' >expected
    for place in "${places[@]}"; do
      same "$name, $kind on $place" expected "$roost" join "$a" "$b" --on id --kind $kind --place "$place"
    done
    same "$name, $kind within a limit" expected "$roost" join "$a" "$b" --on id --kind $kind "${limited[@]}"
  done
  join -t, <(rows "$a") <(rows "$b") | sort >expected
  "$roost" join "$a" "$b" --on id | rows - | cmp -s - expected || fail "$name: not what coreutils join"
  join -t, -v 1 <(rows "$a") <(rows "$b") | sort >expected
  "$roost" join "$a" "$b" --on id --kind anti | rows - | cmp -s - expected || fail "$name: not what coreutils join -v 1"
}

# table SEED ROWS FORMAT: a CSV whose keys are printed by the format, each about four times.
table() {
  echo "id,row_of_$1,text"
  awk -v seed="$1" -v rows="$2" -v format="$3,%d,text %d\n" 'BEGIN { srand(seed); for (i = 0; i < rows; ++i) printf format, rand() * rows / 4 - 100, i, i % 7 }'
}

# Integers; texts; integers that are texts, since the other side is none or they have leading zeros; nearly all different; all the same.
for format in %d key-%d %05d; do
  table 1 20000 $format >a.csv
  table 2 10000 $format >b.csv
  expect_joins "keys like $format" a.csv b.csv
done
table 1 3000 %d >a.csv
table 2 3000 %d | sed '1!s/^7,/seven,/' >b.csv
expect_joins "integers beside texts" a.csv b.csv
{ echo id,x; yes same,1 | head -n 300; } >a.csv
{ echo id,y; yes same,2 | head -n 400; } >b.csv
expect_joins "one key" a.csv b.csv
{ echo id,y; yes 5,2 | head -n 400; } >c.csv
expect_joins "no key of both" a.csv c.csv
expect_joins "one integer" c.csv c.csv
printf 'id,x\n9223372036854775807,a\n-9223372036854775808,b\n-1,c\n' >a.csv
printf 'id,y\n-1,d\n9223372036854775807,e\n0,f\n' >b.csv
expect_joins "large integers" a.csv b.csv
printf 'id,x\n9223372036854775808,a\n18446744073709551615,b\n-0,c\n0,d\n' >a.csv
printf 'id,y\n-1,e\n-9223372036854775808,f\n-0,g\n18446744073709551615,h\n' >b.csv
expect_joins "integers that are too large" a.csv b.csv

# More pairs than memory holds: written some at a time, in the same order; the first ones cost nothing.
numbered() { # NAME KEY ROWS
  echo "id,$1"
  seq "$3" | sed "s/^/$2,/"
}
for key in same 7; do
  numbered x $key 3000 >a.csv
  numbered y $key 3000 >b.csv
  { echo id,x,y; join -t, <(tail -n +2 a.csv) <(tail -n +2 b.csv); } >expected
  for place in "${places[@]}"; do
    same "9 million pairs of '$key' on $place" expected "$roost" join a.csv b.csv --on id --place "$place"
  done
  numbered x $key 20000 >a.csv
  numbered y $key 20000 >b.csv
  (ulimit -v 500000 && exec timeout 120 "$roost" join a.csv b.csv --on id --place host --threads 2) 2>stderr | head -n 5 >stdout
  code=${PIPESTATUS[0]}
  [[ $code -eq 141 && ! -s stderr ]] || fail "400 million pairs of '$key': exit code $code: $(cat stderr)"
  printf 'id,x,y\n' >expected
  printf "$key,1,%d\n" 1 2 3 4 >>expected
  cmp -s stdout expected || fail "400 million pairs of '$key': $(cat stdout)"
done

# Keys of both files that the limit cannot hold at once; many pairs, some at a time.
for format in %d key-%d; do
  for side in x y; do
    echo "id,$side" >$side.csv
    awk -v format="$format,%d\n" 'BEGIN { for (i = 0; i < 250000; ++i) printf format, (i * 99991) % (i % 5 ? 250000 : 9000), i }' >>$side.csv
  done
  sed -i '1!s/$/7/' x.csv
  for command in "join x.csv y.csv --on id --kind semi" "join x.csv y.csv --on id --kind left" "unique x.csv -c id --sum x"; do
    # shellcheck disable=SC2086
    "$roost" $command --place host >expected || fail "$command: exit code $?"
    # shellcheck disable=SC2086
    same "$command within a limit" expected "$roost" $command "${limited[@]}"
  done
  [[ $(ls -A | grep -c spill) -eq 0 ]] || fail "files were left: $(ls -A)"
  (trap '' XFSZ && ulimit -f 1000 && exec "$roost" join x.csv y.csv --on id --kind semi "${limited[@]}" 2>stderr | wc -l >stdout)
  [[ $(cat stderr) == "roost: .: cannot be written: File too large; make room, "* ]] || fail "a disk that is full: $(cat stderr)"
done

# Tables without rows.
echo id,none >empty.csv
expect_joins "no rows in B" a.csv empty.csv
expect_joins "no rows in A" empty.csv a.csv
expect_joins "no rows at all" empty.csv empty.csv

# Real words, with the page and the line where they stand.
words() {
  echo "id,$1_line"
  awk '{ gsub(/[^A-Za-z0-9_]+/, " "); n = split($0, word, " "); for (i = 1; i <= n; ++i) print word[i] "," NR }' "$root/docs/$1.md"
}
words reproduction >a.csv
words guide >b.csv
expect_joins "words" a.csv b.csv

# unique: lines and columns, against coreutils, and in the order in which they come first.
table 3 20000 %d >integers.csv
table 3 20000 "'%d'" >texts.csv
printf 'one\ntwo\rthree\n\none\n\nlast' >odd
: >nothing
cat "$root"/docs/*.md >pages
cut -d, -f1 b.csv >words
for file in integers.csv texts.csv odd nothing pages words; do
  awk '{ if (!($0 in times)) line[++n] = $0; ++times[$0] } END { for (i = 1; i <= n; ++i) printf "%7d %s\n", times[line[i]], line[i] }' $file >expected
  for place in "${places[@]}"; do
    same "unique $file on $place" expected "$roost" unique $file --place "$place"
  done
  same "unique $file within a limit" expected "$roost" unique $file "${limited[@]}"
  sort $file | uniq -c | sort >expected
  "$roost" unique $file | sort | cmp -s - expected || fail "unique $file: not what sort | uniq -c"
done
for file in integers.csv texts.csv b.csv empty.csv; do
  tail -n +2 $file | cut -d, -f1 | sort | uniq -c | sort >expected
  "$roost" unique $file --column id | sort | cmp -s - expected || fail "unique --column of $file: not what sort | uniq -c"
done

# Quotes: what needs them gets them, and only that. A table of such rows joined with itself is as it was.
cat >quoted.csv <<'CSV'
id,"a ""name""","with, comma"
1,"Smith, J.","said ""yes"""
2,"two
lines",
3,, blanks 
4,"
","""
"""
CSV
printf '%s\n' id 4 3 2 1 >only_id.csv
for kind in semi inner left; do
  same "quotes, $kind" quoted.csv "$roost" join quoted.csv only_id.csv --on id --kind $kind
done
same "no match for quotes" <(head -n 1 quoted.csv) "$roost" join quoted.csv empty.csv --on id --kind semi
sed 's/$/\r/' quoted.csv >crlf.csv
same "CR and LF" crlf.csv "$roost" join crlf.csv only_id.csv --on id
sed 's/$/\r/' only_id.csv >only_id_crlf.csv
same "CR and LF in B alone" quoted.csv "$roost" join quoted.csv only_id_crlf.csv --on id
printf 'id,x\n1,Z\n' >x.csv
printf '"i""d,","with, comma"\n1,"b,"\n' >y.csv
printf 'id,x,"with, comma"\n1,Z,"b,"\n' >expected
same "quoted names" expected "$roost" join x.csv y.csv --on 'id=i"d,'
printf 'a=b,c\n1,2\n' >equals.csv
printf 'a=b,c,c_right\n1,2,2\n' >expected
same "a name with =" expected "$roost" join equals.csv equals.csv --on a=b
printf 'c,a=b,a=b\n' >expected
printf '"one\n""column"\n""\n' >column.csv
same "one empty column" column.csv "$roost" join column.csv column.csv --on $'one\n"column'
printf '      2 "Smith, J."\n      1 \n      1 "a ""b"""\n' >expected
printf 'n,m\n"Smith, J.",1\n,2\n"Smith, J.",3\n"a ""b""",4\n' >names.csv
same "fields as CSV has them" expected "$roost" unique names.csv --column n
printf 'id,y\n\n1,2\r\n\r\n1,3' >loose.csv # empty lines, mixed ends, and none of the last line
printf 'id,x,y\n1,Z,2\n1,Z,3\n' >expected
same "loose lines" expected "$roost" join x.csv loose.csv --on id

# 200,000 columns take linear time, however they are called.
columns=200000
wide() { # NAMES: of the columns behind the first one
  { echo id && seq $columns | sed "s/.*/$1/"; } | paste -sd,
  { echo 1 && seq $columns; } | paste -sd,
}
wide 'c&' >wide.csv
wide x >alike.csv
for b in wide alike; do
  timeout 60 "$roost" join wide.csv $b.csv --on id >stdout 2>stderr || fail "200,000 columns, $b: $(cat stderr)"
  [[ $(head -n 1 stdout | tr , '\n' | sort -u | wc -l) -eq 400001 && $(tail -n 1 stdout | tr , '\n' | wc -l) -eq 400001 ]] ||
    fail "200,000 columns, $b: not those of both"
done
[[ $(head -n 1 stdout | cut -d, -f200002-200008) == x,x_right,x_right_right,x_right_right_right,x_right_right_right_right,*1,*2 ]] ||
  fail "names of which there are many: $(head -n 1 stdout | cut -d, -f200002-200008)"
some=$(seq 1 20000 | sed 's/^/--column c/')
# shellcheck disable=SC2086
timeout 60 "$roost" unique wide.csv $some >stdout 2>stderr || fail "20,000 columns of 200,000: $(cat stderr)"
[[ $(tr , '\n' <stdout | wc -l) -eq 20000 ]] || fail "20,000 columns of 200,000: $(tr , '\n' <stdout | wc -l)"

# Standard input, pipes, and files to write to.
same "standard input" expected "$roost" join - loose.csv --on id <x.csv
refused "one of the two files only" join - - --on id <x.csv
mkfifo one
refused "one: is a pipe, which can be one of the two files only" join one ./one --on id
refused "no?such: there is no such file" unique $'no\nsuch'  # one line, whatever the name
rm one
refused "is a pipe, which can be one of the two files only" join - /dev/stdin --on id < <(cat x.csv)
same "a file twice" <(printf 'id,x,x_right\n1,Z,Z\n') "$roost" join - /dev/stdin --on id <x.csv
# What somebody has read of standard input before is not there any more.
printf 'taken\nid\nb\nb\n' >begun
(read -r _ && "$roost" unique -) <begun | sort >stdout
printf '      1 id\n      2 b\n' | sort | cmp -s - stdout || fail "standard input that somebody has begun: $(cat stdout)"
# Where nobody hears of an error, it still is one, and what is right stays right.
"$roost" unique missing 2>/dev/full
[[ $? -eq 1 ]] || fail "a missing file and a full stderr"
printf 'k,v\n1,a\n1\n' >one_bad
"$roost" unique one_bad --column k --bad-lines skip >stdout 2>/dev/full || fail "a skipped line and a full stderr"
same "a pipe" expected "$roost" join x.csv <(cat loose.csv) --on id
"$roost" join x.csv loose.csv --on id --output out.csv >stdout 2>stderr || fail "--output: $(cat stderr)"
cmp -s out.csv expected || fail "--output: wrong: $(cat out.csv)"
[[ ! -s stdout ]] || fail "--output: printed too"
seq 10000 >out.csv
"$roost" join x.csv loose.csv --on id --output out.csv || fail "--output over a file"
cmp -s out.csv expected || fail "--output over a file: wrong"

same "standard input by default" <(printf '      2 b\n      1 a\n') "$roost" unique <<<$'b\na\nb'

# Outer joins: A's rows in order, then what B has besides, with its key where A has it.
printf 'x,id,y\n1,a,2\n3,b,4\n5,,6\n' >oa.csv
printf 'id,y,z\nb,7,8\nc,9,10\n,11,12\nb,13,14\n' >ob.csv
cat >expected <<'CSV'
x,id,y,y_right,z
1,a,2,,
3,b,4,7,8
3,b,4,13,14
5,,6,11,12
,c,,9,10
CSV
same "outer" expected "$roost" join oa.csv ob.csv --on id --kind outer
sed -i 's/^5,,6,11,12/5,,6,,/; s/y_right/y_b/' expected && echo ',,,11,12' >>expected
same "outer, empty keys" expected "$roost" join oa.csv ob.csv --on id -k outer --empty-keys never --suffix _b
printf 'x,id,y\n1,a,2\n5,,6\n' >expected
same "anti, empty keys" expected "$roost" join oa.csv ob.csv --on id --kind anti --empty-keys never
table 1 30000 %d >a.csv
table 2 20000 %d >b.csv
{ in_order left a.csv b.csv && in_order anti b.csv a.csv | tail -n +2 | sed -E 's/^([^,]*),/\1,,,/'; } | sed '1s/,text$/,text_right/' >expected
same "outer of many" expected "$roost" join a.csv b.csv --on id --kind outer

# Several columns, another delimiter, names that both have, and the same names again.
printf 'year;land;x;x_right\n1;de;"a;b";c\n1;fr;"d,e";f\n2;de;g;h\n' >several_a
printf 'country;x;year\nde;1,5;1\nfr;2;1\nde;3;3\n' >several_b
printf 'year;land;x;x_right;x_right_right\n1;de;"a;b";c;1,5\n1;fr;d,e;f;2\n' >expected
same "several columns" expected "$roost" join several_a several_b -d ';' --on year --on land=country
printf '3;de;;;3\n' | cat <(head -n 3 expected) <(echo '2;de;g;h;') - >expected_outer
same "several columns, outer" expected_outer "$roost" join several_a several_b -d ';' --on year --on land=country -k outer
sed 's/;/\t/g; s/"\|,//g' several_b >tabs
same "tabs" <(tr -d , <several_b | tr ';' '\t') "$roost" join tabs tabs --delimiter tab --on country --kind semi
refused "by ';', add --delimiter ';'" join several_a several_b --on year
refused "by tab, add --delimiter tab" unique tabs --column x
refused "by ',', add --delimiter ','" unique x.csv --delimiter '|' --column x

# Progress on a terminal, unless rows go to it as well.
mkfifo slow
for output in "" "-o out.csv"; do
  (seq 20 && sleep 0.5 && echo 1) >slow &
  timeout 60 script -qec "'$roost' unique slow $output" typescript </dev/null >/dev/null || fail "on a terminal: $?"
  wait
  [[ $(grep -c "reads slow" typescript) -eq $((${#output} > 0)) ]] || fail "progress, '$output': $(cat typescript)"
done
rm slow out.csv

# Compressed files.
gzip -c a.csv >a.gz
zstd -q a.csv -o a.zst
"$roost" unique a.csv --column id >expected
for other in 'xz:\xfd7zXZ\0' 'lzma:\x5d\0\0\x80\0' 'bzip2:BZh91AY&SY' 'bzip2:BZh9\x17rE8P\x90' 'lz4:\x04\x22\x4d\x18' 'lz4:\x02\x21\x4c\x18' \
  'lzip:LZIP\x01' 'lzop:\x89LZO\0\r\n\x1a\n' 'snappy:\xff\x06\0\0sNaPpY' 'compress:\x1f\x9d\x90' 'pack:\x1f\x1e' \
  'zip:PK\x03\x04' 'zip:PK\x05\x06' '7z:7z\xbc\xaf\x27\x1c' 'rar:Rar!\x1a\x07'; do
  printf "%b" "${other#*:}and more" >packed
  refused "packed: is .*${other%%:*}.* FILE | roost" unique packed
  gzip -c packed >packed.gz
  refused "packed.gz: is compressed, and the text inside is .*${other%%:*}" unique packed.gz
done
# Tables that are no text; text may begin with their letters. They are not written either.
for other in 'PAR1\x15\x04:Parquet.*read_parquet' 'ARROW1\0\0:Arrow.*read_ipc'; do
  printf "%b" "${other%%:*}and more" >packed
  refused "packed: is an\? ${other#*:}" unique packed
  refused "packed: is an\? ${other#*:}" join a.csv packed --on id
done
printf 'PAR1,ARROW1\nPAR1,ARROW1\n' >letters.csv
[[ $("$roost" unique letters.csv --column PAR1) == "      1 PAR1" ]] || fail "a column PAR1"
for command in "unique a.csv" "join a.csv a.csv --on id"; do
  # shellcheck disable=SC2086
  refused "Parquet is not written here" $command --output a.parquet
done
[[ ! -e a.parquet ]] || fail "a.parquet was written"
tar -cf packed a.csv
refused "packed: is a tar archive" unique packed
gzip -cn a.csv | gzip -c >packed
refused "packed: is compressed, and the text inside is compressed by gzip" unique packed
zstd -qc a.csv | zstd -qc >packed
refused "packed: is compressed, and the text inside is compressed by zstd" join a.csv packed --on id

# All frames of a file, whatever lies between them; and what is behind the last one.
skippable='\x5a\x2a\x4d\x18\x03\0\0\0abc'
nothing='\x50\x2a\x4d\x18\0\0\0\0'
begin() { head -n 4000 a.csv; }
rest() { tail -n +4001 a.csv; }
frames() { # NAME: the file packed has what a.csv has
  same "$1" expected "$roost" unique packed --column id
  same "$1, piped" expected "$roost" unique --column id < <(cat packed)
}
{ printf "$skippable" && zstd -qc a.csv; } >packed
frames "a skippable frame first"
{ begin | zstd -qc && zstd -qc </dev/null && printf "$nothing$skippable" && rest | zstd -qc && printf "$skippable"; } >packed
frames "frames of zstd"
{ begin | gzip -c && gzip -c </dev/null && rest | gzip -c && head -c 1000 /dev/zero; } >packed
frames "frames of gzip, and zeros"
{ begin | gzip -c && head -c 100 /dev/zero && rest | gzip -c; } >packed
frames "zeros between"
{ begin | gzip -c && rest | zstd -qc; } >packed
frames "gzip, then zstd"
{ begin | zstd -qc && rest | gzip -c; } >packed
frames "zstd, then gzip"
zstd -qc --long=31 <a.csv >packed
frames "a window of 2 GiB"
(failures=0 && ulimit -v 1000000 && refused "without --long" unique packed && exit $failures) || fail "a window larger than memory"
printf "$nothing" >packed
refused "packed: is empty" unique packed --column id
same "no frame with text" /dev/null "$roost" unique packed
{ gzip -c a.csv && echo garbage; } >packed
"$roost" unique packed --column id >stdout 2>stderr
[[ $? -eq 0 && $(cat stderr) == "roost: packed: left out what follows the compressed text"* ]] || fail "garbage: $(cat stderr)"
cmp -s stdout expected || fail "garbage behind gzip: other rows"
for end in '\x1f' '\x1f\x8b' '\x1f\x8b\x08' '\x28\xb5' '\x28\xb5\x2f\xfd' "${skippable%bc}"; do
  { gzip -c a.csv && printf "$end"; } >packed
  refused "packed: is cut off" unique packed
done
{ zstd -qc a.csv && echo garbage; } >packed
refused "packed: has other data after its Zstandard frames" unique packed
{ gzip -c a.csv && printf '\x1f\x8b\x07'; head -c 100 /dev/zero; } >packed
refused "packed: cannot be decompressed" unique packed
same "gzip" expected "$roost" unique a.gz --column id
same "zstd" expected "$roost" unique - --column id <a.zst
same "both" a.csv "$roost" join a.gz a.zst --on id --kind semi
seq 400000 >numbers # more than is read at a time
gzip -c numbers >numbers.gz
zstd -q numbers
"$roost" unique numbers >expected
same "much gzip" expected "$roost" unique numbers.gz
same "much zstd" expected "$roost" unique numbers.zst
head -c 3000 a.gz >cut.gz
refused "^roost: cut.gz: is cut off" unique cut.gz --output fresh.csv
refused "^roost: cut.gz: is cut off" join cut.gz a.csv --on id --output fresh.csv
head -c 3000 a.zst | tail -c +200 | cat <(head -c 200 a.zst) - >bad.zst
printf 'xxxxxxxx' | dd of=bad.zst bs=1 seek=100 conv=notrunc status=none
refused "^roost: bad.zst: \(cannot be decompressed\|is cut off\)" unique bad.zst --output fresh.csv
[[ ! -e fresh.csv ]] || fail "a damaged file: wrote something"

# Lines of Windows, and of old Macs; other encodings.
printf '      2 a\n      1 b\n' >expected
for lines in '\xef\xbb\xbfa\nb\na' 'a\r\nb\r\na' 'a\r\nb\r\na\r' 'a\r\nb\na\n' 'a\rb\ra\r' '\xef\xbb\xbfa\rb\ra'; do
  printf "$lines" >lines
  same "lines like $lines" expected "$roost" unique lines
  gzip -kf lines
  same "lines like $lines, gzip" expected "$roost" unique lines.gz
done
printf 'a\rb\n\r\n\xef\xbb\xbfa\n' >lines
printf '      1 a\rb\n      1 \n      1 \xef\xbb\xbfa\n' >expected
same "CR and a mark inside" expected "$roost" unique lines
for encoding in UTF-16 UTF-32; do
  echo a | iconv -t $encoding >lines
  refused "lines: is in $encoding; .*iconv -f $encoding" unique lines
  refused "lines: is in $encoding; .*iconv -f $encoding" join lines lines --on a
done

# unique: order, the first ones, and CSV.
printf 'n,m\nx,1\ny,1\ny,1\n"q,",2\ny,2\nx,3\n' >counts.csv
same "by count" <(printf '      3 y\n      2 x\n      1 "q,"\n') "$roost" unique counts.csv -c n --sort count
same "top" <(printf '      3 y\n') "$roost" unique counts.csv -c n -s count -n 1
same "CSV" <(printf 'n,count\nx,2\ny,3\n"q,",1\n') "$roost" unique counts.csv -c n --format csv
same "several columns" <(printf 'm,n,count\n1,x,1\n1,y,2\n2,"q,",1\n2,y,1\n3,x,1\n') "$roost" unique counts.csv -c m -c n --format csv
same "lines as CSV" <(printf 'line,count\n"n,m",1\n"x,1",1\n') "$roost" unique counts.csv --format csv -n 2

# What there is of different lines takes memory, not how many there are; nor do the rows of A.
long=$(printf 'x%.0s' {1..200})
lines() { # BYTES: at most
  yes "7,$long
8,$long" 2>/dev/null | head -c "$1"
}
(ulimit -v 700000 && lines 500000000 | timeout 120 "$roost" unique --threads 2 -n 2 >stdout 2>stderr) || fail "500 MB of lines: $(cat stderr)"
sed "s/$long/long/" stdout | cmp -s - <(printf '1231527 7,long\n1231527 8,long\n') || fail "500 MB of lines: $(cut -c1-20 stdout)"
(ulimit -v 500000 && { echo id,x && lines 400000000 | head -n -1; } | timeout 120 "$roost" join - x.csv --on id --kind semi --threads 2 >stdout 2>stderr) ||
  fail "400 MB of rows: $(cat stderr)"
[[ $(cat stdout) == id,x ]] || fail "400 MB of rows: $(head -c 100 stdout)"
# Short lines, too: there are so many at once, whatever ends them.
for end in '\n' '\r'; do
  (ulimit -v 900000 && head -c 16000000 /dev/zero | tr '\0' "$end" | timeout 120 "$roost" unique --threads 2 >stdout 2>stderr) ||
    fail "16 million lines with $end: $(cat stderr)"
  [[ $(cat stdout) == "16000000 " ]] || fail "16 million lines with $end: $(cat stdout)"
done
(ulimit -v 900000 && { echo n && yes 7 | head -c 24000000; } | timeout 120 "$roost" unique -c n --threads 2 >stdout 2>stderr) ||
  fail "12 million fields: $(cat stderr)"
[[ $(cat stdout) == "12000000 7" ]] || fail "12 million fields: $(cat stdout)"
(ulimit -v 500000 && { echo id && yes 777 | head -c 48000000; } | timeout 120 "$roost" join - x.csv --on id --kind semi --threads 2 >stdout 2>stderr) ||
  fail "12 million rows: $(cat stderr)"
[[ $(cat stdout) == id ]] || fail "12 million rows: $(head -c 100 stdout)"

# Lines in order need no table up to where they are not: the order breaks at each place, or behind a few million lines.
in_order=('' A AB B$'\r'x Ba C$'\t' 'D d')
for end in '\n' '\r\n'; do
  for ((at = 0; at <= ${#in_order[@]}; ++at)); do
    for line in "${in_order[@]}" BB; do
      printf "%s$end" "${in_order[@]:0:at}" "$line" "${in_order[@]:at}" "$line" E | head -c -"$((at % 2))" >lines
      tr -d '\r' <lines | awk '!seen[$0]++' >expected
      "$roost" unique lines | tr -d '\r' | cut -c 9- | cmp -s - expected || fail "$at lines in order, '$line', $end"
    done
  done
done
for order in "seq -f %07.0f 1200000" "seq 1200000" "seq -f -%07.0f 1200000 -1 1"; do
  { $order && echo 1000000 && $order && printf '\n0000007'; } >lines
  awk '!seen[$0]++' lines >expected
  "$roost" unique lines | cut -c 9- | cmp -s - expected || fail "many lines in order: $order"
done
yes '' | head -n 3000000 >lines
same "empty lines" <(echo '3000000 ') "$roost" unique lines
(ulimit -v 700000 && seq -f %08.0f 5000000 | timeout 120 "$roost" unique --threads 2 >stdout 2>stderr) ||
  fail "5 million lines in order: $(cat stderr)"
[[ $(wc -l <stdout) -eq 5000000 && $(tail -n 1 stdout) == "      1 05000000" ]] || fail "5 million lines: $(tail -n 1 stdout)"

# Progress on a terminal, which is gone at the end; not if rows go there as well.
/usr/bin/python3 - "$roost" <<'PY' || fail "progress of what takes long"
import os
import pty
import re
import subprocess
import sys
import time


def all_of(ours, terminal):
    """What was written to a terminal that all have left."""
    os.close(terminal)
    said = b""
    try:
        while piece := os.read(ours, 1000):
            said += piece
    except OSError:  # how a terminal ends
        pass
    return said


for both in False, True:
    ours, terminal = pty.openpty()
    with open("rows", "wb") as rows:
        run = subprocess.Popen([sys.argv[1], "unique", "-n", "1"], stdin=subprocess.PIPE,
                               stdout=terminal if both else rows, stderr=terminal)
        for _ in range(3):
            run.stdin.write(b"a line\n" * 400000)
            run.stdin.flush()
            time.sleep(0.3)
        run.stdin.close()
        assert run.wait() == 0
    said = all_of(ours, terminal)
    assert both or (b"\r\033[Kreads standard input: " in said and said.endswith(b" MB ...\r\033[K")), said
    assert b"%" not in said, said  # the size of a pipe is not known
    assert not both or said == b"1200000 a line\r\n", said

# How much of a file is read, and how long the rest takes. Here its rows wait.
with open("some.csv", "wb") as some, open("many.csv", "wb") as many:
    some.write(b"id\n7\n")
    many.write(b"id\n" + b"7\n" * 25000000)
ours, terminal = pty.openpty()
run = subprocess.Popen([sys.argv[1], "join", "many.csv", "some.csv", "--on", "id", "--kind", "semi"],
                       stdout=subprocess.PIPE, stderr=terminal)
time.sleep(1)
rows = run.stdout.read()
assert run.wait() == 0 and len(rows) == 50000003
said = all_of(ours, terminal)
shown = re.findall(rb"\r\x1b\[Kreads many.csv: \d+ of 50 MB, \d+ %, \d+ s left \.\.\.", said)
assert shown and said.endswith(b"\r\033[Kreads many.csv: 50 of 50 MB, 100 % ...\r\033[K"), said
PY

# Ctrl-C ends a command. No half a file stays, and what was there does.
echo kept >kept.csv
mkfifo slow
for out in kept.csv fresh.csv; do
  env --default-signal=INT "$roost" join slow a.csv --on id --output $out 2>stderr &
  pid=$!
  exec 9<>slow
  head -n 1000 a.csv >&9
  sleep 0.2
  kill -INT $pid
  exec 9>&-
  wait $pid
  code=$?
  [[ $code -eq 130 && ! -s stderr ]] || fail "Ctrl-C: exit code $code: $(cat stderr)"
done
[[ $(cat kept.csv) == kept && $(ls fresh.csv* kept.csv* 2>/dev/null) == kept.csv ]] || fail "Ctrl-C left $(ls fresh.csv* kept.csv*)"

# Bad input. Nothing is written.
refused_join() { # WORDS FILE: as A and as B
  echo "kept" >kept.csv
  refused "^roost: $1" join "$2" x.csv --on id --output fresh.csv
  refused "^roost: $1" join x.csv "$2" --on id --output kept.csv
  [[ ! -e fresh.csv && $(cat kept.csv) == kept ]] || fail "join of $2: wrote something"
}
ln -s gone.csv dangling.csv
: >zero.csv
printf '\n\n' >blank.csv
printf 'id,x\n1,2\n1\n' >few.csv
printf 'id,x\n1,2\n\n1,2,3\n' >many.csv
printf 'id,x\n1,"2\n3\n' >open.csv
printf 'id,x\n1,2"\n' >inside.csv
printf 'id,x\n1,"2"3\n' >behind.csv
printf 'id,"x\n1,2\n' >header.csv
printf 'id,id\n1,2\n' >twice.csv
printf '\377\376i\0d\0' >utf16.csv
mkdir -p folder
refused_join "missing.csv: .*no such file" missing.csv
refused_join "x.csv/a.csv: .*no such file" x.csv/a.csv
refused_join "dangling.csv: .*no such file" dangling.csv
refused_join "folder: .*directory" folder
refused_join "/dev/zero: .*device" /dev/zero
refused_join "zero.csv: is empty" zero.csv
refused_join "blank.csv: .*no header" blank.csv
refused_join "few.csv: line 3 has 1 field .*--bad-lines skip" few.csv
refused_join "many.csv: line 4 has 3 fields" many.csv
refused_join "open.csv: line 2 .*never closed" open.csv
refused_join "inside.csv: line 2 .*quote inside" inside.csv
refused_join "behind.csv: line 2 .*behind a closing quote" behind.csv
refused_join "header.csv: line 1 .*names of the columns" header.csv
refused_join "twice.csv: has 2 columns 'id'" twice.csv
refused_join "utf16.csv: .*iconv" utf16.csv
refused_join "names.csv: has no column 'id'; it has 'n', 'm'" names.csv
refused "x.csv: has no column 'y'; it has 'id', 'x'" join x.csv y.csv --on y=x
refused "y.csv: has no column 'x'; it has 'i\"d,', 'with, comma'" join x.csv y.csv --on id=x
refused "^roost: the output: has no column 'y'; it has 'id', 'x'$" join x.csv x.csv --on id --column y --kind semi
refused "header.csv: line 1" join header.csv x.csv --on id --bad-lines skip
if ((EUID != 0)); then
  chmod a-r only_id.csv
  refused_join "only_id.csv: .*permissions" only_id.csv
fi
refused "^roost: missing: .*no such file" unique missing
refused "^roost: folder: .*directory" unique folder
refused "^roost: zero.csv: is empty" unique zero.csv --column id
refused "^roost: few.csv: line 3" unique few.csv --column id
refused "^roost: x.csv: has no column 'y'" unique x.csv --column y

# Wrong options.
refused "--on" join x.csv y.csv
refused "required" join x.csv --on id
refused "--kind" join x.csv y.csv --on id --kind full
refused "--place" join x.csv y.csv --on id --place moon
refused "--bad-lines" join x.csv y.csv --on id --bad-lines keep
refused "--column" unique x.csv --bad-lines skip
refused "--delimiter" unique x.csv --delimiter tab
refused "one character" join x.csv y.csv --on id --delimiter ab
refused "one character" join x.csv y.csv --on id --delimiter '"'
refused "--top" unique x.csv --top 0
for number in 18446744073709551616 99999999999999999999999 -18446744073709551616; do
  refused "--top: $number \(does not fit\|is negative\)" unique x.csv --top $number
  refused "--threads" unique x.csv --threads $number
done
for number in 0x10 010 1e3 1.5 '' ' 5' +5 true 5x; do
  refused "--top" unique x.csv --top "$number"
done
refused "named twice by --on" join x.csv loose.csv --on id=id --on id=y --kind outer
refused "--sort" unique x.csv --sort name
refused "--limit: 1000000 bytes; give at least 6291456" unique x.csv --place host --threads 2 --limit 1MB
refused "--limit: 0 bytes" unique x.csv --limit 0
refused "--limit: .*xb unit" unique x.csv --limit 5XB
refused "--host-limit requires --spill" unique x.csv --host-limit 5GB
refused "--spill" unique x.csv --spill nowhere
refused "/proc: no file can be made there" unique x.csv --place host --limit 1GiB --spill /proc
refused "--empty-keys" join x.csv y.csv --on id --empty-keys sometimes
refused "--suffix" join x.csv y.csv --on id --suffix ''
if [[ ${#places[@]} -eq 1 ]]; then
  refused "no CUDA device\|without CUDA" join x.csv x.csv --on id --place cuda
  refused "no CUDA device\|without CUDA" unique x.csv --place cuda
fi

# Bad lines that are skipped are counted; the others are all there.
skipping() { # WORDS EXPECTED ARGUMENT...
  local words=$1 expected=$2
  shift 2
  "$roost" "$@" --bad-lines skip >stdout 2>stderr || fail "$*: $(cat stderr)"
  [[ $(cat stdout) == "$expected" ]] || fail "$*: printed $(cat stdout)"
  [[ $(grep -c "$words" stderr) -eq 1 && $(wc -l <stderr) -eq 1 ]] || fail "$*: no '$words' alone in: $(cat stderr)"
}
printf 'id,w\n1\n1,"2\n1,3\n4,5,6\n1,"7"8\n1,9\n' >bad.csv
skipping "^roost: bad.csv: left out 4 bad lines; the first: line 2 has 1 field" $'id,w,x\n1,3,Z\n1,9,Z' join bad.csv x.csv --on id
skipping "^roost: bad.csv: left out 4 bad lines" $'id,x,w\n1,Z,3\n1,Z,9' join x.csv bad.csv --on id
skipping "^roost: few.csv: left out 1 bad line; line 3 has" "      1 2" unique few.csv --column x

# Exit codes: 1 for what the files are, 64 for the command line.
"$roost" join few.csv x.csv --on id 2>stderr
[[ $? -eq 1 ]] || fail "no exit code 1 for a bad line"
"$roost" unique missing 2>stderr
[[ $? -eq 1 ]] || fail "no exit code 1 for a missing file"
"$roost" join x.csv x.csv 2>stderr
[[ $? -eq 64 ]] || fail "no exit code 64 without --on"

# What cannot be written.
refused "^roost: /dev/full: cannot be written (No space" unique pages --output /dev/full
refused "^roost: nowhere/out: cannot be written" join x.csv x.csv --on id --output nowhere/out
refused "^roost: folder: cannot be written" join x.csv x.csv --on id --output folder
refused "^roost: x.csv: is also an input" join x.csv y.csv --on id --output x.csv
refused "^roost: ./x.csv: is also an input" join y.csv x.csv --on id --output ./x.csv
refused "^roost: pages: is also an input" unique pages --output pages
for command in "unique pages" "join x.csv x.csv --on id"; do
  # shellcheck disable=SC2086
  "$roost" $command >/dev/full 2>stderr
  [[ $? -eq 1 ]] || fail "$command: no exit code 1 for a full disk"
  [[ $(cat stderr) == "roost: standard output: cannot be written (No space left on device); "* ]] || fail "$command, full disk: $(cat stderr)"
done
(trap '' XFSZ && ulimit -f 1 && "$roost" unique pages --output half 2>stderr) && fail "a file over the limit was written"
[[ ! -e half ]] || fail "half a file was left"

finish
