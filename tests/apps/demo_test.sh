#!/bin/bash
# scripts/demo refuses what it does not understand before it installs or builds anything.
# Usage: demo_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
demo=$root/scripts/demo

refuses() { # LINE ARGUMENT...
  local line=$1
  shift
  timeout 10 "$demo" "$@" >stdout 2>stderr && fail "demo $* began"
  [[ $(cat stderr) == "demo: $line" && ! -s stdout ]] || fail "demo $*: $(cat stdout stderr)"
}
refuses "unknown option --nonsense; try --help" --nonsense
refuses "one mesh is shown at a time: a, or b" a b
refuses "$work/missing.obj: there is no such file" missing.obj
refuses "--up needs a value; try --help" --up
refuses "--serve draws no plots; leave --serve or --plots out" --serve --plots

# With the package: rates, which all agree on the ids. Without: the two commands.
timeout 60 "$demo" --python >stdout 2>stderr || fail "demo --python: $(cat stderr)"
grep -qE "distinct: .* saved$|bin/pip install \.$" stdout || fail "demo --python: $(cat stdout)"
[[ $("$demo" --help) == "usage: scripts/demo"* ]] || fail "no help"

finish
