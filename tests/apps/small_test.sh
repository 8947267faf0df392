#!/bin/bash
# The small command of ./scripts/demo: what it is built from is enough, and it says what it has not. With tables of
# other libraries, which this build has alone.
# Usage: small_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

compiler=$(command -v clang++-19 || command -v "${CXX:-c++}") # the faster one, where it is
cmake -S "$root" --preset demo -B "$work/small" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_CXX_FLAGS_RELEASE="-O0 -DNDEBUG" -DROOST_UNITY=12 \
  -DROOST_PEER_ABSL=/usr -DROOST_PEER_TSL_ROBIN_MAP=/usr >log 2>&1 &&
  cmake --build "$work/small" --target roost >log 2>&1 || { fail "the build: $(tail -n 30 log)" && finish; }
roost=$work/small/bin/roost

# refused_peer WORDS OPTION...: CMake stops, and says these words.
refused_peer() {
  local words=$1
  shift
  cmake -S "$root" --preset demo -B "$work/none" -DROOST_PEER_ABSL= -DROOST_PEER_CUCO= "$@" \
    >log 2>&1 && fail "configured with $*"
  tr -s '\n ' ' ' <log | grep -qF -- "$words" || fail "$*: no '$words' in: $(cat log)"
}
here=$work/there
mkdir -p "$here/include/bght" && touch "$here/include/bght/bcht.hpp" # all that CMake looks for
refused_peer "ROOST_PEER_ABSL is $here, where Abseil is not: give a checkout" \
  -DROOST_PEER_ABSL="$here"
refused_peer "ROOST_PEER_CUCO is $here, where include/cuco/static_map.cuh is not: give a checkout" \
  -DROOST_PEER_CUCO="$here"
refused_peer "ROOST_PEER_BGHT is given, but ROOST_CUDA is OFF" -DROOST_PEER_BGHT="$here"

"$roost" bench --place host --table frozen_map,boost_flat_map,std_unordered_map,sorted_map --log2n 0,12 --reps 1 \
  --format csv >stdout 2>stderr || fail "bench: $(cat stderr)"
[[ $(grep -c ',ok,' stdout) -eq 24 ]] || fail "bench: not 24 right rows: $(cat stdout)"
"$roost" voxels "$data/cube.obj" --grid 32 --place host --reps 1 --out out >stdout 2>stderr || fail "voxels: $(cat stderr)"
grep -q " 5768 *frozen_map .*ok$" stdout || fail "voxels: $(cat stdout)"
"$roost" voxels "$data/cube.obj" sphere --op union --grid 16 --place host --no-picture >stdout 2>stderr || fail "union: $(cat stderr)"
peers=(bench --place host --with-peers --table absl_flat_hash_map,tsl_robin_map --reps 1 --format csv)
"$roost" "${peers[@]}" --log2n 0,12 >stdout 2>stderr || fail "peers: $(cat stderr)"
[[ $(grep -c ',ok,' stdout) -eq 12 ]] || fail "peers: not 12 right rows: $(cat stdout)"
"$roost" "${peers[@]}" --log2n 12 --ops find_hit --skip-last-run >stdout 2>stderr
[[ $? -eq 2 && $(grep -c ' wrong,' stdout) -eq 2 ]] || fail "idle runs of peers: $(cat stdout stderr)"
refused "no table 'absl_flat_hash_map'" bench --place host --table absl_flat_hash_map
refused "demo --whole" bench --place host --key-bits 64
refused "demo --whole" bench --place host --shards 2
refused "'join' is not a command; commands: info, bench, voxels; ./scripts/demo --whole builds the others" join
"$roost" --help | grep -q "demo --whole" || fail "--help does not say that there is more"

finish
