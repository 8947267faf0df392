#!/bin/bash
# roost join and roost unique on random files, against Python's csv module and dicts: text_differential.py for some seconds.
# Usage: text_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 "$programs/text_differential.py" "$roost" --seconds 8 --seed "$(date +%j)" || fail "see above"
finish
