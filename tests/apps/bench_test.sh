#!/bin/bash
# roost bench, its plot and info: bad input gets one line on stderr and a non-zero exit; good input gets checked rows in each format.
# Usage: bench_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

refused "no table 'nonsense'.* frozen_map, " bench --place host --table nonsense
refused "load factor 0" bench --place host --load-factor 0
refused "load factor 5" bench --place host --load-factor 5
refused "load factor nan" bench --place host --load-factor nan
refused "smaller --log2n" bench --place host --log2n 36 --key-bits 64
refused "key-bits 64" bench --place host --log2n 32
refused "log2n" bench --log2n -1
refused "ops" bench --ops fly
refused "--keys: odd" bench --keys odd
refused "--queries: rare" bench --queries rare
refused "voxels.* up to --log2n 29" bench --place host --keys voxels --log2n 30
refused "strided.* up to --log2n 30" bench --place host --keys strided --log2n 31
refused "prints CSV" bench --place host --sweep --format json
refused "excludes --sweep" bench --place host --sweep --load-factor 0.5
refused "key-bits" bench --key-bits 31
refused "threads" bench --threads -1
refused "place" bench --place moon
refused "reps" bench --reps 0
refused "a command is missing; commands: info, bench, " # none at all
refused "'dance' is not a command; commands: info, bench, " dance
refused "stars: 'dance' is not a command; commands: build, solve" stars dance
refused "is negative" bench --region-slots -5
refused "is negative" unique --top -5
refused "does not fit in 64 bits" bench --region-slots 18446744073709551616
refused "log2n: 010 is not a decimal number" bench --log2n 010
refused "log2n: 0x10 is not a decimal number" bench --log2n 3,0x10
refused "budget: 18446744073709551616 does not fit" bench --budget 18446744073709551616
refused "channels" bench --channels 32,18446744073709551648
refused "log2n" bench --log2n 4294967306
refused "reps" bench --reps 4294967297
refused "gpus" bench --gpus 4294967297
refused "shards" bench --shards 18446744073709551617
refused "--copies '4294967297'" bench --copies 4294967297
refused "load factor" bench --load-factor 1e400
refused "load factor" bench --load-factor -0.5
refused "nothing was measured: frozen_multimap has none" bench --place host --table frozen_multimap --log2n 4 --copies 100
refused "number of --copies that divides" bench --place host --ops join --log2n 10 --copies zipf
refused "ROOST_PEER_ABSL" bench --place host --with-peers
refused "leave out --shards" bench --place host --with-peers --shards 2
refused "works only with frozen_map of layout compact" bench --place host --table frozen_bucketed --load-factor 1.2 --log2n 10
if ! "$roost" info | grep -q '^cuda [0-9]'; then
  refused "no CUDA device\|without CUDA" bench --place cuda
fi

# rows FORMAT ARGUMENT...: how many rows are right.
ok_rows() {
  timeout 300 "$roost" bench --place host --format csv "$@" 2>stderr | tee stdout | grep -c ',ok,'
}

all=$(ok_rows --log2n 12 --threads 2 --ops build,find_hit,find_half,find_miss,partition)
[[ $all -eq 38 ]] || fail "all tables of the host: $all rows right of 38: $(cat stdout stderr)"
for table in frozen_compact frozen_bucketed frozen_cuckoo concurrent_map stadium_map_8_automatic sorted_map std_unordered_map boost_flat_map tbb_concurrent_hash_map; do
  [[ $(grep -c "^$table,32,32," stdout) -eq 4 ]] || fail "no four rows of $table"
done
[[ $(ok_rows --log2n 0,1,10 --table frozen_bucketed --threads 1) -eq 9 ]] || fail "tiny tables: $(cat stdout stderr)"
[[ $(ok_rows --log2n 10 --load-factor 0.5,0.9,1 --table frozen_bucketed --ops build) -eq 3 ]] || fail "load factors: $(cat stdout stderr)"
[[ $(ok_rows --log2n 18 --load-factor 0.8,1.2 --table frozen_compact --path regional) -eq 6 ]] || fail "compact, regional: $(cat stdout stderr)"
[[ $(grep -c ',regional,' stdout) -eq 4 ]] || fail "the path is not told: $(cat stdout)"
refused "path" bench --place host --path sideways

# Lookups through refs, of tables that have one; and the host's clock, which the host always has.
[[ $(ok_rows --log2n 10 --table frozen_compact,concurrent_map,std_unordered_map --path kernel --clock wall) -eq 7 ]] ||
  fail "refs: $(cat stdout stderr)"
[[ $(grep -c ',kernel,' stdout) -eq 4 ]] || fail "lookups through refs are not told: $(cat stdout)"
[[ $(ok_rows --log2n 10 --table frozen_compact,concurrent_map --ops find_half --path neighbours) -eq 2 ]] ||
  fail "neighbours: $(cat stdout stderr)"
# What is only measured where it is named.
[[ $(ok_rows --log2n 0,10,13 --table perfect_spatial_hash --threads 1 --reps 1) -eq 9 ]] ||
  fail "perfect spatial hashing: $(cat stdout stderr)"
refused "clock" bench --place host --clock sun
[[ $(ok_rows --log2n 10 --key-bits 64 --value-bits 64 --ops build) -eq 9 ]] || fail "64-bit pairs: $(cat stdout stderr)"
[[ $(ok_rows --log2n 10 --value-bits 0 --ops build) -eq 6 ]] || fail "sets: $(cat stdout stderr)"

# Tables over several shards.
[[ $(ok_rows --shards 3 --log2n 0,8,14 --ops build,insert,find_hit,find_half,find_miss,erase,group,count_hit,join --reps 1) -eq 34 ]] ||
  fail "shards: $(cat stdout stderr)"
[[ $(ok_rows --shards 2 --log2n 14 --value-bits 0 --path regional --reps 1) -eq 3 ]] || fail "sharded sets: $(cat stdout stderr)"
for queries in zipf equal; do
  [[ $(ok_rows --shards 4 --log2n 14 --queries $queries --path regional --ops find_half --reps 1) -eq 2 ]] ||
    fail "shards, $queries: $(cat stdout stderr)"
done
refused "not in range 1 to 64" bench --shards 65
refused "take --gpus" bench --place host --shards 2 --timeline
refused "are measured with" bench --shards 2 --key-bits 64
refused "one place" bench --shards 2 --sweep

# Tables by the names that users of the library know; what could not be measured besides is told.
[[ $(ok_rows --log2n 10 --table frozen_map --ops build,erase) -eq 1 ]] || fail "frozen_map: $(cat stdout stderr)"
grep -q '^frozen_map,32,32,build' stdout || fail "frozen_map is not called so: $(cat stdout)"
grep -q '^roost: bench: not all was measured: erase is for tables that change' stderr || fail "erase was not measured, and nobody said so: $(cat stderr)"
[[ $(ok_rows --log2n 10 --table frozen_set --value-bits 0 --ops build) -eq 1 ]] || fail "frozen_set: $(cat stdout stderr)"
"$roost" bench --place host -n 10 -t frozen_map -r 1 >stdout
grep -q '^frozen_map .* 1,024 .* ok$' stdout && grep -q ' M/s ' stdout || fail "numbers for people: $(cat stdout)"

# The first build of a process, with nothing kept.
[[ $(ok_rows --log2n 0,12 --ops first_build --reps 1) -eq 18 ]] || fail "first builds: $(cat stdout stderr)"
"$roost" bench --help | grep -q first_build || fail "first_build is not in the help"

# What keys look like and how often they are asked for; both are told.
for keys in mixed consecutive strided voxels; do
  for bits in 32 64; do
    [[ $(ok_rows --log2n 0,7,14 --keys "$keys" --key-bits $bits --table frozen_compact,frozen_bucketed,frozen_cuckoo,partition \
      --ops build,find_half,partition --reps 1) -eq 21 ]] || fail "$keys, $bits bits: $(cat stdout stderr)"
    [[ $(grep -c ",$keys,shuffled,1$" stdout) -eq 21 ]] || fail "$keys keys are not told: $(cat stdout)"
  done
done
for queries in zipf equal; do
  [[ $(ok_rows --log2n 0,1,12 --queries $queries --ops build,find_hit,find_half,find_miss --reps 1) -eq 108 ]] || fail "$queries: $(cat stdout stderr)"
  [[ $(ok_rows --log2n 18 --queries $queries --table frozen_compact,frozen_bucketed --path regional --reps 1) -eq 6 ]] ||
    fail "$queries, regional: $(cat stdout stderr)"
  [[ $(grep -c ",regional,.*,mixed,$queries,1$" stdout) -eq 4 ]] || fail "$queries queries are not told: $(cat stdout)"
done

# What only maps that change can do: more than one region of them, and so many that batches go by region.
changes=insert,insert_half,insert_last,erase,apply_many,apply_few
for bits in 32 64; do
  [[ $(ok_rows --log2n 0,5,14,$((16 + bits / 32)) --key-bits $bits --value-bits $bits --ops $changes,mixed --reps 1) -eq 72 ]] || fail "changes, $bits bits: $(cat stdout stderr)"
  [[ $(grep -c '^concurrent_map,' stdout) -eq 28 && $(grep -c '^tbb_concurrent_hash_map,' stdout) -eq 24 && $(grep -c '^stadium_map_8_automatic,' stdout) -eq 20 ]] || fail "changes of other tables: $(cat stdout)"
done
for path in direct regional; do
  [[ $(ok_rows --log2n 10,18 --table concurrent_map --ops $changes --path $path --reps 1) -eq 12 ]] || fail "changes, $path: $(cat stdout stderr)"
done

# A stadium_map of each kind that is asked for.
[[ $(ok_rows --log2n 10,17 --table stadium_map --ticket-bits 1,2,4,8 --bodies place,host --region-slots 5000 --ops build,find_half,erase --reps 1) -eq 48 ]] ||
  fail "kinds of stadium_map: $(cat stdout stderr)"
[[ $(grep -c '^stadium_map_2_host,' stdout) -eq 6 ]] || fail "the kind is not told: $(cat stdout)"
[[ $(ok_rows --log2n 0,10,14 --table stadium_map --bodies place,host --region-slots 100 --ops grow --reps 2) -eq 6 ]] || fail "tables that grow: $(cat stdout stderr)"
[[ $(ok_rows --log2n 0,14 --table concurrent_map --ops grow --reps 1) -eq 2 ]] || fail "maps that grow: $(cat stdout stderr)"
[[ $(ok_rows --log2n 14 --table stadium_map --budget 64KiB --ops build --reps 1) -eq 1 ]] || fail "a budget: $(cat stdout stderr)"
refused "ticket-bits" bench --ticket-bits 3
refused "bodies" bench --bodies moon
refused "budget" bench --budget much

# Keys that come several times: tables that group, and sums, beside sorting and the standard library's map.
[[ $(ok_rows --log2n 0,5,14,18 --ops group --copies 1,8,zipf,half --reps 1) -eq 180 ]] || fail "groups: $(cat stdout stderr)"
[[ $(ok_rows --log2n 19 --ops group --copies half --reps 1) -eq 12 ]] ||
  fail "a crowded region: $(cat stdout stderr)"
[[ $(ok_rows --log2n 14 --key-bits 64 --value-bits 64 --ops count_hit,count_half,count_miss,retrieve,join --copies 1,8 --reps 1) -eq 10 ]] || fail "matches: $(cat stdout stderr)"
refused "--copies '0'" bench --copies 0
refused "--copies 'often'" bench --copies often

# Tables of voxels, for who names them: three clouds, scrambled and sorted.
voxel_tables=coordinate_index,kernel_map,document_table,sorted_voxels
[[ $(ok_rows --log2n 0,12 --table $voxel_tables --ops build,find_hit,map,index_map,pairs,stride_2,graph --reps 1) -eq 134 ]] ||
  fail "voxels: $(cat stdout stderr)"
[[ $(grep -c ',scanner scrambled,' stdout) -eq 24 ]] || fail "clouds are not told: $(cat stdout)"
refused "voxels" bench --voxels cheese
[[ $(ok_rows --log2n 0,10 --table sparse_conv --ops conv,map_conv,stride_2_conv,gradients --channels 3,16 --reps 1) -eq 96 ]] ||
  fail "layers: $(cat stdout stderr)"
[[ $(ok_rows --log2n 10 --table sparse_conv --ops conv,gradients --reps 1 --skip-last-run) -eq 0 ]] ||
  fail "layers that were not there are right: $(cat stdout)"
refused "channels" bench --channels 0

# Without --ops, what the tables do.
for table in partition partition_stable kernel_map sparse_conv frozen_multimap two_way_index group_by map_of_copies sorted_groups std_unordered_multimap; do
  [[ $(ok_rows --log2n 8 --table $table --voxels shell --channels 4 --reps 1) -gt 0 && ! -s stderr ]] || fail "$table without --ops: $(cat stdout stderr)"
done
for table in sharded_multimap sharded_join sharded_map; do
  [[ $(ok_rows --shards 2 --log2n 8 --table $table --reps 1) -gt 0 && ! -s stderr ]] || fail "$table without --ops: $(cat stdout stderr)"
done
[[ $(ok_rows --log2n 8 --table coordinate_index,kernel_map,std_voxels,sorted_voxels,document_table --voxels shell --reps 1) -gt 0 && ! -s stderr ]] ||
  fail "tables of voxels without --ops: $(cat stdout stderr)"
[[ $(grep -c '^coordinate_index,' stdout) -ge 2 && $(grep -c '^kernel_map,.*,map,' stdout) -eq 2 ]] || fail "tables of voxels without --ops: $(cat stdout)"

# A load curve has 31 steps; a thousand rounds of churn end as 6 rows.
for path in automatic direct regional; do
  [[ $(ok_rows --log2n 12,15 --load-factor 0.85 --ops load_curve,churn --path $path --reps 1) -eq 74 ]] || fail "load curve and churn, $path: $(cat stdout stderr)"
  [[ $(grep -c ',load_curve,1024,' stdout) -eq 31 ]] || fail "load curve: $(cat stdout)"
  for op in insert hit miss; do
    [[ $(grep -c ",fresh_$op," stdout) -eq 2 && $(grep -c ",churn_$op," stdout) -eq 2 ]] || fail "churn: no two rows of $op: $(cat stdout)"
  done
done

# No check says ok if the last run does nothing: answers are poisoned before it, and keys looked up after it.
idle() {
  "$roost" bench --place host --threads 2 --log2n 12 --copies 1 --reps 1 --skip-last-run --format csv --ops "$@" >stdout 2>stderr
}
idle rebuild,find_hit,find_half,find_miss,$changes,mixed,grow,load_curve,churn,count_hit,count_half,count_miss
[[ $? -eq 2 && $(grep -c ' wrong,' stdout) -eq 90 ]] || fail "idle runs: not 90 rows wrong: $(cat stdout stderr)"
! grep -q ',ok,' stdout || fail "idle runs: $(grep ',ok,' stdout)"
idle find_hit,find_half,find_miss --value-bits 0
[[ $? -eq 2 && $(grep -c ' wrong,' stdout) -eq 18 ]] || fail "idle runs of sets: $(cat stdout stderr)"
idle find_hit,count_hit --shards 2
[[ $? -eq 2 && $(grep -c ' wrong,' stdout) -eq 3 ]] || fail "idle runs of shards: $(cat stdout stderr)"
idle find_hit,graph --table coordinate_index,kernel_map --voxels shell
[[ $? -eq 2 && $(grep -c ' wrong,' stdout) -eq 4 ]] || fail "idle runs of voxels: $(cat stdout stderr)"
for op in build first_build partition group retrieve join "map --table kernel_map" "index_map --table kernel_map"; do
  # shellcheck disable=SC2086
  idle $op && fail "idle run: $op"
  grep -q "made nothing" stderr || fail "idle run, $op: $(cat stdout stderr)"
done

# A sweep: 3 sizes of 9 tables and 8 more load factors of compact, 6 of bucketed, of concurrent_map and of stadium_map, each with 3 operations.
[[ $(ok_rows --sweep --log2n 12 --reps 1) -eq 159 ]] || fail "sweep: $(cat stdout stderr)"
[[ $(head -n 1 stdout) == table,*,place,keys,queries,copies ]] || fail "sweep: not the columns: $(head -n 1 stdout)"
for op in build find_hit find_miss; do
  for n in 1024 2048 4096; do
    [[ $(grep -c ",$op,$n,.*,ok," stdout) -ge 6 ]] || fail "sweep: not 6 tables for $op of $n keys: $(cat stdout)"
  done
  [[ $(grep -c "^frozen_compact,.*,$op,4096," stdout) -eq 9 ]] || fail "sweep: not 9 load factors for $op: $(cat stdout)"
  loads=$(grep "^frozen_bucketed,.*,$op,4096," stdout | cut -d, -f6 | sort -u | wc -l)
  [[ $loads -ge 5 ]] || fail "sweep: $loads real load factors for $op: $(cat stdout)"  # small tables come no closer than 0.88 to 1
done
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  plot=$root/scripts/plot
  mv stdout sweep.csv
  cut -d, -f1-9 sweep.csv | sed 's/^frozen_bucketed/their_table/' >theirs.csv
  "$plot" --rate sweep.csv theirs.csv rate.png 2>stderr || fail "plot: $(cat stderr)"
  [[ $(head -c 4 rate.png) == *PNG ]] || fail "plot: drew no picture"
  ! "$plot" --rate sweep.csv nowhere.csv rate.png 2>stderr || fail "plot: took a file that is not there"
  grep -q "^plot: nowhere.csv: " stderr || fail "plot: does not say which file is missing: $(cat stderr)"
fi

# A sweep of repeated keys: whole and half steps, each kind of copies; what falls off is named, and the exit code is 0.
copies=(--sweep --log2n 13 --reps 1 --table group_by,frozen_multimap --ops group,count_hit,join)
[[ $(ok_rows "${copies[@]}" --copies 2,zipf,100_keys) -eq 22 ]] || fail "copies: $(cat stdout stderr)"
for copies in 2 zipf 100_keys; do
  [[ $(grep -c ",group,[0-9]*,.*,$copies\$" stdout) -ge 4 ]] || fail "copies: not each size with $copies: $(cat stdout)"
done
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  mv stdout copies.csv
  "$plot" --copies copies.csv copies.png 2>stderr || fail "plot: $(cat stderr)"
  [[ $(head -c 4 copies.png) == *PNG ]] || fail "plot: drew no picture of copies"
  ! "$plot" --copies sweep.csv copies.png 2>stderr || fail "plot: took a sweep without copies"
  "$plot" --peers sweep.csv copies.csv peers.png 2>stderr || fail "plot: $(cat stderr)"
  [[ $(head -c 4 peers.png) == *PNG ]] || fail "plot: drew no picture of peers"
  printf 'table,op,n,gops\nother,build,1,1\n' >other.csv
  ! "$plot" --peers other.csv peers.png 2>stderr || fail "plot: took a CSV of other tables"
  grep -q "^plot: other.csv: has no row of these operations" stderr || fail "plot: says $(cat stderr)"
fi
refused "10000_keys" bench --place host --copies 5keys

"$roost" bench --place host --log2n 8 --ops build --reps 1 --format json 2>/dev/null | python3 -m json.tool >/dev/null || fail "not JSON"
"$roost" bench --place host --log2n 8 --ops build --reps 1 | grep -q "^frozen_bucketed .* ok$" || fail "no table for people"

for command in --help --version "join --help" info "bench --place host --log2n 10 --table frozen_compact --reps 1"; do
  # shellcheck disable=SC2086
  "$roost" $command >/dev/full 2>stderr
  [[ $? -eq 1 ]] || fail "$command: no exit code 1 for a full disk"
  [[ $(cat stderr) == "roost: standard output: cannot be written"* && $(wc -l <stderr) -eq 1 ]] || fail "$command, full disk: $(cat stderr)"
done
[[ $("$roost" --help) == "roost: hash tables"*voxels* && $("$roost" --version) =~ ^[0-9.]+$ ]] || fail "--help, --version"

"$roost" info >stdout || fail "info"
grep -q "^host: .* threads, .* GiB" stdout || fail "info says nothing of the host: $(cat stdout)"
grep -q "^default place: " stdout || fail "info names no default place"

finish
