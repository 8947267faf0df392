#!/bin/bash
# roost reproduce: its tables have the rows that the papers have.
# Usage: reproduce_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

"$roost" info | grep -q '^cuda [0-9]' || refused "no CUDA device\|without CUDA" reproduce --place cuda

refused "share" reproduce --share 0
refused "share" reproduce --share 2
refused "nothing not in" reproduce --only nothing

timeout 100 "$roost" reproduce --place host --threads 2 --builds 1 --reps 1 --share 0.001 --only two-kernel,copies >stdout 2>stderr || fail "reproduce --only: $(cat stderr)"
[[ $(grep -c '^### ' stdout) -eq 2 && ! -s stderr ]] || fail "reproduce --only: $(cat stdout stderr)"
head -n 1 stdout | grep -q "^roost [0-9.]* on host: .*, 2 threads, 20[0-9-]*$" || fail "reproduce does not say on what: $(head -n 1 stdout)"

timeout 600 "$roost" reproduce --place host --builds 1 --reps 1 --share 0.02 >stdout 2>stderr || fail "reproduce: $(cat stderr)"
grep -q "^| load factor | 71 % | 7[01].[0-9] % |" stdout || fail "reproduce: not near the paper's load factor: $(head -5 stdout)"
[[ $(grep -c '^### ' stdout) -eq 19 ]] || fail "reproduce: not nineteen tables"
voxels='^\| (of a surface|random) \| [0-9.]+ \|'
[[ $(grep -cE "$voxels( [0-9.]+ \|){6}$" stdout) -eq 6 ]] || fail "reproduce: not 2 x 3 sets of voxels of perfect spatial hashing: $(grep -E "$voxels" stdout)"
[[ $(grep -cE "$voxels .frozen_map.* \|( [0-9.]+ \|){4}$" stdout) -eq 12 ]] || fail "reproduce: not 2 tables of the same voxels: $(grep -E "$voxels" stdout)"
[[ $(sed -n '/Figure 6: a million/,/^###.*Wang/p' stdout | grep -cE '^\|( [0-9.]+ \|){10}$') -eq 11 ]] || fail "reproduce: not 11 numbers of values a key: $(cat stdout stderr)"
[[ $(sed -n '/load curve/,/^### Stadium/p' stdout | grep -c '^| 0\.') -eq 31 ]] || fail "reproduce: not 31 steps of the load curve: $(tail -33 stdout)"
[[ $(sed -n '/Figure 13/,/^### .*Figures 14/p' stdout | grep -c '^| 0\.') -eq 50 ]] || fail "reproduce: not 50 steps of Figure 13: $(tail -80 stdout)"
[[ $(sed -n '/Table 1: a picture/,$p' stdout | grep -cE '^\| [A-Z][A-Za-z0-9() ]* \| [0-9]+ \| [0-9]+ \|( [0-9.]+ \|){5} ([0-9.]+|no match) \|$') -eq 4 ]] || fail "reproduce: not 4 rows of Table 1: $(tail -8 stdout)"
[[ $(sed -n '/spatial hashing: two/,/Table 1/p' stdout | grep -cE '^\| (128|256)\^3: .* \| .*\| [0-9.]+ \|$') -eq 16 ]] || fail "reproduce: not 8 facts of two grids: $(grep '\^3' stdout)"
[[ $(grep -cE 'misplaces.*\| 0 \|$' stdout) -eq 2 ]] || fail "reproduce: the fill misplaces voxels of smooth meshes: $(grep misplaces stdout)"
[[ $(sed -n '/Figure 18/,/Figure 19/p' stdout | grep -cE '^\| [1248]( \| [0-9.]+){4} \|$') -eq 4 ]] || fail "reproduce: not 4 ticket sizes of Figure 18: $(tail -20 stdout)"
[[ $(sed -n '/one core and in bulk/,$p' stdout | grep -cE '^\|( [0-9.]+ \|){7}$') -eq 2 ]] || fail "reproduce: not 2 sizes of the document's table of voxels: $(tail -18 stdout)"
for defect in "never ends | with a fixed capacity a build_error, else all 1025 are there" "another one in the next run | all have the row of the first; 786432 copies are counted" \
  "absent although it was inserted; as if it was absent | found; rows are less than 2^32 - 1" "7003774 | 6859000" "1025 rows | 4097 rows"; do
  grep -qF "$defect |" stdout || fail "reproduce: not $defect: $(tail -8 stdout)"
done

finish
