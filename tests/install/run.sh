#!/usr/bin/env bash
# usage: run.sh BUILD_DIRECTORY CMAKE [NVCC ARCHITECTURE,... HAS_GPU]
#
# Installs the built project into a fresh folder, then configures, builds and runs a consumer that lies outside the
# tree and finds the package there. With NVCC a CUDA consumer is compiled too, and run if HAS_GPU is ON.
set -euo pipefail
build=$1 cmake=$2 nvcc=${3:-} architectures=${4:-} has_gpu=${5:-OFF}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$cmake" --install "$build" --prefix "$folder/prefix" >/dev/null
cp -r "$(dirname "${BASH_SOURCE[0]}")" "$folder/consumer"
options=(-DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_BUILD_TYPE=Release)
if [[ $nvcc ]]; then
  options+=(-DCONSUMER_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES="${architectures//,/;}")
fi
"$cmake" -G Ninja -S "$folder/consumer" -B "$folder/build" "${options[@]}"
"$cmake" --build "$folder/build"
grep -q "$folder/prefix" "$folder/build/CMakeCache.txt"

"$folder/build/consumer"
if [[ $nvcc && $has_gpu == ON ]]; then
  "$folder/build/consumer_cuda"
fi
