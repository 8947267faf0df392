#!/usr/bin/env bash
# scripts/model_gpus: links without a limit, links that are one, bad input.
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"
model=$root/scripts/model_gpus

# rates OPTION...: of find, a number a line.
rates() {
  "$model" "$@" | awk -F, '$1 == "find" { print $5 }'
}

[[ $(rates --gpus 1) == 59.9 ]] || fail "one GPU: $(rates --gpus 1)"
[[ $(rates --gpus 4 --link 1e9) == 240 ]] || fail "links without a limit: $(rates --gpus 4 --link 1e9)"
# Three quarters of 2^27 queries of 4 bytes and as many answers, at 10 GB/s: at least 80.5 ms.
awk -v rate="$(rates --gpus 4 --link 10)" 'BEGIN { exit !(rate > 6.3 && rate < 4 * 134.2 / 80.5) }' ||
  fail "slow links: $(rates --gpus 4 --link 10)"
awk -v rate="$(rates --gpus 1 --machines 2 --network 10)" 'BEGIN { exit !(rate > 4.6 && rate < 2 * 134.2 / 53.6) }' ||
  fail "a slow network: $(rates --gpus 1 --machines 2 --network 10)"

for wrong in "--gpus 0" "--gpus two" "--link -1" "--measured find:2" "--nothing"; do
  # shellcheck disable=SC2086
  ! "$model" $wrong >stdout 2>stderr || fail "$wrong was taken"
  [[ -s stderr && ! -s stdout ]] || fail "$wrong: $(cat stdout stderr)"
  ! grep -q Traceback stderr || fail "$wrong: $(cat stderr)"
done
finish
