#!/bin/bash
# Clouds and meshes in random dialects, against what Python has written; the seed is that of the day.
# Usage: random_files_test.sh PATH_OF_ROOST
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/apps/lib.sh
source "$here/lib.sh"
python3 "$here/random_files.py" "$roost" --seconds 6 --seed "$(date +%Y%m%d)" || fail "see above"
finish
