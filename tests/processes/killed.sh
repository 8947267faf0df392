#!/usr/bin/env bash
# usage: killed.sh PROCESSES KILL_AT_SEND [STEP]
#
# Kills each process of examples/processes.cpp before its 1st, 1 + STEP-th, ... send, until it has no more to
# send: so in each phase of each call. The others must end soon, and say who is gone, unless they had all that
# they needed.
set -u
example=$1 library=$2 step=${3:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
killed=0
for rank in 0 1 2; do
  for ((send = 1; ; send += step)); do
    ROOST_KILL_RANK=$rank ROOST_KILL_SEND=$send LD_PRELOAD=$library \
      timeout -k 1 60 "$example" >"$folder/out" 2>"$folder/err"
    code=$?
    grep -q "processes: right" "$folder/out" && break
    [[ $code -eq 1 ]] || { echo "rank $rank, send $send: exit code $code" && exit 1; }
    grep -q "is gone" "$folder/err" || { echo "rank $rank, send $send: nobody has heard of it" && exit 1; }
    for other in 0 1 2; do
      [[ $other -eq $rank ]] && continue
      grep -q "^process $other: rank $rank is gone$" "$folder/err" && continue
      grep -q "^process $other of" "$folder/out" && continue
      echo "rank $rank, send $send: process $other does not say who is gone: $(cat "$folder/err")"
      exit 1
    done
    killed=$((killed + 1))
  done
done
((killed >= 12)) || { echo "only $killed were killed" && exit 1; }
echo "$killed were killed"
