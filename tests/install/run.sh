#!/usr/bin/env bash
# usage: run.sh BUILD_DIRECTORY CMAKE [NVCC ARCHITECTURE,... HAS_GPU]
#
# Installs the headers, for which nothing is built and nothing but oneTBB is looked for, into a fresh folder,
# then configures, builds and runs a consumer that lies outside the tree and finds the package there. With
# NVCC a CUDA consumer is compiled too, and run if HAS_GPU is ON. Last the command of the build is installed,
# and used without its tree.
set -euo pipefail
build=$1 cmake=$2 nvcc=${3:-} architectures=${4:-} has_gpu=${5:-OFF}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

here=$(dirname "${BASH_SOURCE[0]}")
"$cmake" -G Ninja -S "$here/../.." -B "$folder/headers" >"$folder/log" || { cat "$folder/log" && exit 1; }
if grep -qE '^(fmt|assimp|CLI11|GTest|ROOST_[A-Z]*_LIBRARY)' "$folder/headers/CMakeCache.txt"; then exit 1; fi
"$cmake" --install "$folder/headers" --prefix "$folder/prefix" >/dev/null
[[ ! -e $folder/prefix/bin ]]
cp -r "$here" "$folder/consumer"
options=(-DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_BUILD_TYPE=Release)
options+=(-DCMAKE_CXX_FLAGS_RELEASE="-O0 -DNDEBUG") # it is built sooner
if [[ $nvcc ]]; then
  options+=(-DCONSUMER_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc")
  options+=(-DCMAKE_CUDA_ARCHITECTURES="${architectures//,/;}")
fi
"$cmake" -G Ninja -S "$folder/consumer" -B "$folder/build" "${options[@]}"
"$cmake" --build "$folder/build"
grep -q "$folder/prefix" "$folder/build/CMakeCache.txt"

"$folder/build/consumer"
if [[ $nvcc && $has_gpu == ON ]]; then
  "$folder/build/consumer_cuda"
elif [[ $nvcc ]]; then
  [[ $("$folder/build/consumer_cuda") == "consumer_cuda: no device" ]]  # and no crash
fi

# The port of vcpkg installs the same headers, and a consumer finds them. So does Conan, where it is.
"$cmake" -D PREFIX="$folder/vcpkg" -P "$here/vcpkg_stand_in.cmake" >"$folder/log" 2>&1 ||
  { cat "$folder/log" && exit 1; }
diff -r "$folder/prefix/include" "$folder/vcpkg/include"
"$cmake" -G Ninja -S "$folder/consumer" -B "$folder/from_vcpkg" -DCMAKE_PREFIX_PATH="$folder/vcpkg" >/dev/null
grep -q "roost_DIR:PATH=$folder/vcpkg/share/roost" "$folder/from_vcpkg/CMakeCache.txt"
if command -v conan >/dev/null; then
  CONAN_HOME=$folder/conan conan profile detect >/dev/null 2>&1
  CONAN_HOME=$folder/conan conan create "$here/../../packaging/conan" -s compiler.cppstd=20 \
    -o "&:system_tbb=True"
else
  echo "no conan here: packaging/conan was not tried"
fi

# The C interface, by pkg-config and by find_package, alone.
if [[ -e $build/roost.pc ]]; then
  "$cmake" --install "$build" --component c --prefix "$folder/c" >/dev/null
  if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$folder/c" -name roost.pc)")
    export PKG_CONFIG_PATH
    read -ra flags <<<"$(pkg-config --cflags --libs roost)"
    rpath=-Wl,-rpath,$(pkg-config --variable=libdir roost)
    cc -std=c99 "$here/../c/c99_test.c" "${flags[@]}" "$rpath" -o "$folder/c99"
    "$folder/c99"
  fi
  mkdir "$folder/with_c" && cp "$here/../c/c99_test.c" "$folder/with_c"
  cat >"$folder/with_c/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(with_c LANGUAGES C)
find_package(roost 0.2 CONFIG REQUIRED)
add_executable(with_c c99_test.c)
target_link_libraries(with_c PRIVATE roost::c)
END
  "$cmake" -G Ninja -S "$folder/with_c" -B "$folder/with_c/build" -DCMAKE_PREFIX_PATH="$folder/c" >/dev/null
  "$cmake" --build "$folder/with_c/build" >/dev/null
  "$folder/with_c/build/with_c"
fi

"$cmake" --install "$build" --component command --prefix "$folder/command" >/dev/null
data=$(realpath "$here/../apps/data")
cd "$folder/command"
[[ ! -e include ]]
[[ $(printf 'b\na\nb\n' | bin/roost unique --sort count --top 1) == "      2 b" ]]
cmp <(bin/roost --generate bash) share/bash-completion/completions/roost
cmp <(bin/roost --generate zsh) share/zsh/site-functions/_roost
cmp <(bin/roost --generate man) share/man/man1/roost.1
# The plot is drawn by the script that was installed: another one in its place is the one that is called.
printf '#!/bin/sh\necho installed >"$2"\n' >share/roost/plot
bin/roost voxels "$data/cube.obj" --grid 64 --reps 1 --sweep --no-picture --out out >/dev/null
[[ $(cat out/voxels-time.png) == installed ]]
