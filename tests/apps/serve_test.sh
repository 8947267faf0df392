#!/bin/bash
# roost voxels --serve: what the server answers and survives, and the page in a browser.
# Usage: serve_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

refused "1 to 1024 with --serve" voxels box sphere --serve --grid 1025
refused "leave --export" voxels box sphere --serve --export a.ply
refused "leave --export" voxels box sphere --serve --inside fill
refused "no such file" voxels box cone --serve
timeout 200 /usr/bin/python3 -B "$programs/ask_server.py" "$roost" >told 2>&1 || fail "the server: $(tail -c 2000 told)"

if ! command -v chromium >chromium; then
  echo "chromium is not there: the page is not looked at"
elif ! /usr/bin/python3 -c 'import numpy, PIL' 2>numpy; then
  echo "python3-numpy and python3-pil are not there: the page is not looked at"
else
  timeout 400 /usr/bin/python3 -B "$programs/browse_voxels.py" "$roost" >told 2>&1 || fail "the page: $(tail -c 2000 told)"
fi

finish
