#!/bin/bash
# roost voxels: solids voxel by voxel against manifold3d, an independent solid modeller, where it is installed.
# Usage: manifold_test.sh PATH_OF_ROOST; ROOST_TEST_PYTHON: the Python that has it (python3).
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
python=${ROOST_TEST_PYTHON:-python3}

if ! "$python" -c 'import manifold3d, numpy' 2>modules; then
  echo "manifold3d and numpy are not there (pip install manifold3d numpy): nothing is compared"
else
  timeout 600 "$python" -B "$programs/compare_manifold.py" "$roost" 1 >told 2>&1 || fail "$(tail -c 2000 told)"
fi

finish
