# Shared by the tests of the command: sourced, not run. $1: path of roost. Leaves the test in a folder of its own.
# shellcheck shell=bash
set -u
roost=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../..")
data=$root/tests/apps/data programs=$root/tests/apps
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# refused WORDS ARGUMENT...: roost fails within a minute with one line on stderr that begins with "roost: " and has the words, and
# prints nothing on stdout.
refused() {
  local words=$1
  shift
  timeout 60 "$roost" "$@" >stdout 2>stderr
  local code=$?
  [[ $code -ne 0 && $code -lt 124 ]] || fail "$*: exit code $code"
  grep -q -- "$words" stderr || fail "$*: no '$words' in: $(cat stderr)"
  [[ $(wc -l <stderr) -eq 1 && $(<stderr) == "roost: "* ]] || fail "$*: not one line: $(cat stderr)"
  [[ ! -s stdout ]] || fail "$*: printed $(cat stdout)"
}

# Ends the test.
finish() {
  ((failures == 0)) && echo "ok"
  exit $((failures != 0))
}
