#!/bin/bash
# roost stress: ten seconds of it; and that it notices what is wrong, makes it short and can play it again.
# Usage: stress_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
mkdir files
host=(--place host --threads 2 --folder files)

refused "nothing not in" stress --kinds nothing
refused "is no history" stress --calls "nothing 1: check 0 1 0 0" "${host[@]}"
refused "is no history" stress --calls "map 1: insert 1 0 0 0" "${host[@]}"
refused "--folder: Directory does not exist" stress --place host --folder missing

# The same rounds every time, then others.
for seed in 1 $RANDOM$RANDOM; do
  timeout 300 "$roost" stress "${host[@]}" --seconds 5 --seed "$seed" >stdout 2>stderr || fail "seed $seed: $(cat stdout stderr)"
  head -n 1 stdout
  tail -n 2 stdout
  [[ $(head -n 1 stdout) == "roost stress --seed $seed --place host --threads 2" ]] || fail "seed $seed: not on the first line: $(head -n 1 stdout)"
  [[ ! -s stderr && -z $(ls files) ]] || fail "seed $seed: left $(cat stderr; ls files)"
done
for kind in embedding stadium sharded_file; do
  timeout 300 "$roost" stress "${host[@]}" --calls "$kind 1: $([[ $kind == sharded_file ]] && echo rebuild || echo insert) 50 99 3 0; kill 50 99 1 0; kill 9 9 2 0" >stdout 2>stderr || fail "$kind: $(cat stdout stderr)"
  grep -qE "^$kind +1 +3 .* 2$" stdout || fail "$kind: not 2 kills: $(cat stdout)"
done

# broken CALL WORDS SECONDS: a call that spoils the expected state, or ends or stops the process (which then has no
# answer after so many seconds), is found, and what is printed to play it again fails in the same way.
broken() {
  timeout 300 "$roost" stress "${host[@]}" --seed 3 --seconds 5 --patience "$3" --with "$1" >stdout 2>stderr
  local code=$?
  [[ $code -eq 1 && $(wc -l <stderr) -eq 1 && $(<stderr) == "roost: stress: seed 3, round "* ]] || fail "$1: exit code $code, $(cat stderr)"
  grep -q "^FAILED: .*$2" stdout || fail "$1: not '$2': $(cat stdout)"
  grep -q "^Shrunk to [12] calls\? in " stdout || fail "$1: not made short: $(cat stdout)"
  local history
  history=$(sed -nE "s/^To play it again: .* --calls '(.*)'$/\1/p" stdout)
  timeout 60 "$roost" stress "${host[@]}" --patience "$3" --calls "$history" >stdout 2>stderr && fail "$1: '$history' does not fail again"
  grep -q "^FAILED: .*$2" stdout || fail "$1: '$history' fails otherwise: $(cat stdout)"
  [[ -z $(ls files) ]] || fail "$1: left $(ls files)"
}
broken spoil "key 0x[0-9a-f]* has .* and should have " 5
broken crash "the process ended with signal 6" 5
broken hang "no answer for 2 seconds" 2

# Ctrl-C ends it with what was done.
"$roost" stress "${host[@]}" --seconds 1000 >stdout 2>stderr &
sleep 1
kill -INT $!
wait $!
[[ $(tail -n 1 stdout) =~ ^[0-9.]+\ s$ && ! -s stderr && -z $(ls files) ]] || fail "Ctrl-C: $(cat stdout stderr; ls files)"

finish
