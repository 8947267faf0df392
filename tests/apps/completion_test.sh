#!/bin/bash
# Help, completions and the man page: all of the parser, which is the same in each.
# Usage: completion_test.sh PATH_OF_ROOST
# shellcheck source=tests/apps/lib.sh
source "$(dirname "$0")/lib.sh"

for kind in bash zsh man; do
  "$roost" --generate $kind >$kind 2>stderr || fail "--generate $kind: $(cat stderr)"
done
refused "fish not in" --generate fish
! "$roost" --help | grep -q -- --generate || fail "--help shows what is for packages"

# options COMMAND...: the names that help lists.
options() {
  "$roost" "$@" --help | sed -nE 's/^  ((-[A-Za-z]|--[a-z0-9-]+)(,--[a-z0-9-]+)*)( .*)?$/\1/p' | tr ',' '\n' | sort
}
# commands [COMMAND]: those that help lists.
commands() {
  "$roost" "$@" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z]*\).*/\1/p' | sort
}

# What bash offers for a line: complete WORD... with the last word still to be typed.
# shellcheck source=/dev/null
source ./bash || fail "bash cannot read its completion"
complete_words() {
  COMP_WORDS=(roost "$@") COMP_CWORD=$#
  COMPREPLY=()
  _roost
  printf '%s\n' "${COMPREPLY[@]}" | sort
}

same_words() { # WHAT EXPECTED FOUND
  [[ $2 == "$3" && $2 ]] || fail "$1: $(diff <(echo "$2") <(echo "$3"))"
}
all=()
for command in $(commands); do
  all+=("$command")
  for sub in $(commands "$command" | grep -v '^$'); do all+=("$command $sub"); done
done
((${#all[@]} >= 9)) || fail "commands: ${all[*]}"
same_words "commands" "$(commands)" "$(complete_words '')"
for command in "${all[@]}"; do
  read -ra words <<<"$command"
  there=$(options "${words[@]}")
  same_words "bash, $command" "$there" "$(complete_words "${words[@]}" -)"
  section=$(awk -v head=".SS roost $command" '/^\.S/ { on = $0 == head } on' man | sed 's/\\-/-/g')
  function=$(awk -v head="_roost_${command// /_}() {" '$0 == head { on = 1 } on; /^}/ { on = 0 }' zsh)
  for option in $there; do
    grep -q "^\.B\(.*[ ,]\)$option\b" <<<"$section" || fail "man page, $command: no $option"
    grep -q "'\**$option\[" <<<"$function" || fail "zsh, $command: no $option"
  done
  "$roost" "${words[@]}" --help | awk 'length > 100 { print; bad = 1 } END { exit bad }' || fail "$command --help has lines of more than 100 columns"
done
same_words "choices" $'auto\ncuda\nhost' "$(complete_words bench --place '')"
same_words "choices that begin alike" $'semi' "$(complete_words join -k s)"
same_words "choices of words with numbers" $'events\nwall' "$(complete_words bench --clock '')"

for command in bench voxels reproduce join unique "stars build" "stars solve" lidar match stress; do
  # shellcheck disable=SC2086
  "$roost" $command --help | grep -q "^  roost ${command%% *} \|| roost ${command%% *} " || fail "$command --help has no example"
done
"$roost" voxels --help | grep -q "^Usage: roost voxels \[OPTIONS\] meshes\.\.\.$" || fail "voxels --help: $("$roost" voxels --help | grep Usage)"
if command -v zsh >/dev/null; then zsh -n zsh || fail "zsh cannot read its completion"; fi
if command -v man >/dev/null && command -v groff >/dev/null; then
  groff -man -Tutf8 -ww -z man 2>stderr && [[ ! -s stderr ]] || fail "man page: $(cat stderr)"
fi

finish
