#!/bin/bash
# nvcc 13.0.88 and CUB of CCCL 13.0.85 and 13.3.5: the character types of C++ are no integers to some of CUDA.
# Guess: char8_t and char16_t are integers of the language, so a kernel takes pointers to them, as to the
# unsigned integers of their sizes, and cub::DeviceRadixSort sorts them.
# Seen: nvcc compiles a kernel that takes char16_t*, but not the same with char8_t*: it writes the host's half
# of the kernel with unsigned char*, which g++ refuses (nvcc 13.5.37 compiles it). CUB sorts unsigned short,
# but takes char16_t for a struct of the user's, and ends in errors about its members, in both versions.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > kernel.cu <<'CUDA'
template <class T>
__global__ void set(T* p) {
  *p = T(1);
}
int main() { set<<<1, 1>>>(static_cast<TYPE*>(nullptr)); }
CUDA
cat > sort.cu <<'CUDA'
#include <cub/device/device_radix_sort.cuh>
int main() {
  std::size_t bytes = 0;
  const TYPE* from = nullptr;
  TYPE* to = nullptr;
  return cub::DeviceRadixSort::SortKeys(nullptr, bytes, from, to, 5);
}
CUDA

# install NAME NVCC RUNTIME CCCL: their versions
install() {
  python3 -m venv "$1"
  "$1/bin/pip" install -q "nvidia-cuda-nvcc==$2" "nvidia-cuda-crt==$2" "nvidia-nvvm==$2" \
    "nvidia-cuda-runtime==$3" "nvidia-cuda-cccl==$4"
}
# compiles NAME FILE TYPE: prints yes or no
compiles() {
  nvcc=$(find "$1" -path '*/bin/nvcc')
  "$nvcc" -std=c++20 -arch=sm_90 "-DTYPE=$3" -c "$2.cu" -o out.o > log 2>&1 && answer=yes || answer=no
  echo "$1, $2 of $3: $answer" | tee -a seen
}
install 13.0 13.0.88 13.0.96 13.0.85
install 13.5 13.5.37 13.5.37 13.3.5.0.6
for version in 13.0 13.5; do
  for type in char16_t char8_t; do compiles $version kernel $type; done
  for type in 'unsigned short' char16_t; do compiles $version sort "$type"; done
done
diff seen - <<'EXPECTED'
13.0, kernel of char16_t: yes
13.0, kernel of char8_t: no
13.0, sort of unsigned short: yes
13.0, sort of char16_t: no
13.5, kernel of char16_t: yes
13.5, kernel of char8_t: yes
13.5, sort of unsigned short: yes
13.5, sort of char16_t: no
EXPECTED
