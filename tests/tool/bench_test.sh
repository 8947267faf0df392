#!/bin/bash
# roost bench, info and reproduce: bad input gets one line on stderr and a non-zero exit; good input gets checked rows in each format.
# Usage: bench_test.sh PATH_OF_ROOST
# shellcheck source=tests/tool/lib.sh
source "$(dirname "$0")/lib.sh"

refused "no table 'nonsense'" bench --place host --table nonsense
refused "load factor 0" bench --place host --load-factor 0
refused "load factor 5" bench --place host --load-factor 5
refused "load factor nan" bench --place host --load-factor nan
refused "smaller --log2n" bench --place host --log2n 36 --key-bits 64
refused "key-bits 64" bench --place host --log2n 32
refused "log2n" bench --log2n -1
refused "ops" bench --ops fly
refused "key-bits" bench --key-bits 31
refused "threads" bench --threads -1
refused "place" bench --place moon
refused "reps" bench --reps 0
refused "subcommand" # none at all
refused "subcommand" dance
if ! "$roost" info | grep -q '^cuda [0-9]'; then
  refused "no CUDA device\|without CUDA" bench --place cuda
  refused "no CUDA device\|without CUDA" reproduce --place cuda
fi

# rows FORMAT ARGUMENT...: how many rows are right.
ok_rows() {
  timeout 300 "$roost" bench --place host --format csv "$@" 2>stderr | tee stdout | grep -c ',ok,'
}

all=$(ok_rows --log2n 12 --threads 2 --ops build,find_hit,find_half,find_miss,partition)
[[ $all -eq 25 ]] || fail "all tables of the host: $all rows right of 25: $(cat stdout stderr)"
for table in frozen_compact frozen_bucketed frozen_cuckoo sorted_map std_unordered_map boost_flat_map; do
  [[ $(grep -c "^$table,32,32," stdout) -eq 4 ]] || fail "no four rows of $table"
done
[[ $(ok_rows --log2n 0,1,10 --table frozen_bucketed --threads 1) -eq 9 ]] || fail "tiny tables: $(cat stdout stderr)"
[[ $(ok_rows --log2n 10 --load-factor 0.5,0.9,1 --table frozen_bucketed --ops build) -eq 3 ]] || fail "load factors: $(cat stdout stderr)"
[[ $(ok_rows --log2n 18 --load-factor 0.8,1.2 --table frozen_compact --path regional) -eq 6 ]] || fail "compact, regional: $(cat stdout stderr)"
[[ $(grep -c ',regional,' stdout) -eq 4 ]] || fail "the path is not told: $(cat stdout)"
refused "path" bench --place host --path sideways
[[ $(ok_rows --log2n 10 --key-bits 64 --value-bits 64 --ops build) -eq 6 ]] || fail "64-bit pairs: $(cat stdout stderr)"
[[ $(ok_rows --log2n 10 --value-bits 0 --ops build) -eq 6 ]] || fail "sets: $(cat stdout stderr)"
"$roost" bench --place host --log2n 8 --ops build --reps 1 --format json 2>/dev/null | python3 -m json.tool >/dev/null || fail "not JSON"
"$roost" bench --place host --log2n 8 --ops build --reps 1 | grep -q "^frozen_bucketed .* ok$" || fail "no table for people"

"$roost" info >stdout || fail "info"
grep -q "^host: .* threads, .* GiB" stdout || fail "info says nothing of the host: $(cat stdout)"
grep -q "^default place: " stdout || fail "info names no default place"
timeout 300 "$roost" reproduce --place host --builds 1 --reps 1 >stdout 2>stderr || fail "reproduce: $(cat stderr)"
grep -q "^| load factor | 71 % | 71.0 % |" stdout || fail "reproduce: not the paper's load factor: $(head -5 stdout)"
[[ $(grep -c '^### ' stdout) -eq 4 ]] || fail "reproduce: not four tables"

finish
