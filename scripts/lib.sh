# Shared by the scripts of this folder: sourced, not run.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What the command of ./scripts/demo needs, as Debian 12 calls it, whose libboost-dev is too old.
boost=libboost-dev
! grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release || boost=libboost1.81-dev
packages=(
  g++ cmake ninja-build
  libtbb-dev "$boost" libfmt-dev libcli11-dev libassimp-dev libexpat1-dev libstb-dev libzip-dev
  zlib1g-dev nlohmann-json3-dev
)

# What the whole command needs besides; what plots need; what tests are built with; and what ./scripts/test
# needs, which reads a mesh, too.
# shellcheck disable=SC2034
tool_packages=(libcsv-dev libzstd-dev libxxhash-dev libcfitsio-dev libsep-dev)
# shellcheck disable=SC2034
plot_packages=(python3-matplotlib) unit_test_packages=(libgtest-dev librapidcheck-dev)
# shellcheck disable=SC2034
test_packages=(
  "${tool_packages[@]}" "${unit_test_packages[@]}" "${plot_packages[@]}" glmark2-data
  libabsl-dev robin-map-dev
  clang-19 libclang-rt-19-dev clang-format-19 python3-venv python3-dev chromium zstd
)

export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros
fi

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# Prints the comment at the head of the running script, which is its help text.
help() {
  awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
}

has_gpu() {
  nvidia-smi -L 2>/dev/null | grep -q '^GPU 0'
}

# set_up [PACKAGE...]: installs what is missing of the packages above and of these; touches nothing when all
# are there.
set_up() {
  local missing=() package
  packages+=("$@")
  command -v dpkg-query >/dev/null || {
    echo "not a Debian system: what these packages hold must be there: ${packages[*]}"
    return
  }
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "packages are missing and there is no sudo; run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  # Waits for up to five minutes where another program installs packages.
  local apt_get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  apt() { quietly build/install.log "${apt_get[@]}" "$@"; }
  local install=(install -y --no-install-recommends "${missing[@]}")
  echo "installing ${missing[*]}"
  # The package lists may be absent or out of date: then they are fetched and the install is tried once more.
  apt "${install[@]}" 2>/dev/null || { apt update && apt "${install[@]}"; } ||
    die "apt-get could not install ${missing[*]}; its answer stands above"
}

# quietly LOG COMMAND...: output goes to the file LOG, and to the screen only if the command fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || { cat "$log" >&2 && return 1; }
}

# build PRESET [TARGET...]: configures and builds in build/PRESET.
build() {
  local preset=$1
  shift
  echo "== build $preset"
  quietly "build/$preset/configure.log" cmake --preset "$preset" &&
    cmake --build --preset "$preset" ${1:+--target "$@"}
}
