#!/bin/bash
# roost stars: the same sky in files of all kinds has the same answers.
# Usage: stars_kinds_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

/usr/bin/python3 "$programs/differ_stars.py" "$roost" --seconds 6 || fail "see above"

finish
