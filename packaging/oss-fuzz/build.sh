#!/bin/bash -eu
# What OSS-Fuzz calls: builds the fuzzers of $SRC/roost with $CXX, $CXXFLAGS and $LIB_FUZZING_ENGINE, and
# puts into $OUT all that they need where nothing is installed.

# Ubuntu's libraries, which the fuzzers load, are built with libstdc++.
export CXXFLAGS="${CXXFLAGS//-stdlib=libc++/}"
# An RPATH, unlike a RUNPATH, is also where libraries look for theirs.
cmake -S "$SRC/roost" -B "$WORK/roost" -DCMAKE_BUILD_TYPE=None \
  -DROOST_BUILD_FUZZERS=ON -DROOST_FUZZING_ENGINE="$LIB_FUZZING_ENGINE" \
  -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH='$ORIGIN/lib' \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
cmake --build "$WORK/roost" --parallel

mkdir -p "$OUT/lib"
for fuzzer in "$WORK"/roost/bin/fuzz_*; do
  ldd "$fuzzer" | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|dl|rt|pthread|resolv)\.so/ {print $3}' |
    xargs cp -Lt "$OUT/lib"
  cp "$fuzzer" "$OUT"
done
zip -qj "$OUT/fuzz_ply_seed_corpus.zip" "$SRC"/roost/tests/apps/data/*.ply
zip -qj "$OUT/fuzz_c_calls_seed_corpus.zip" "$SRC"/roost/tests/fuzz/seeds/c_calls/*
printf '[asan]\ndetect_leaks=0\n' >"$OUT/fuzz_ply.options" # assimp's, when it refuses a file
cp "$OUT/fuzz_ply.options" "$OUT/fuzz_mesh.options"
