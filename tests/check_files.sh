#!/usr/bin/env bash
# check_files.sh - every source file says what it is for, and none is longer than 800 lines.
#
# usage: check_files.sh SOURCE_FOLDER [BUILD_FOLDER]
#
# A C source or header opens with a comment; a script has one right after its first line, a
# CMake file on its first. Scripts are also given to shellcheck, where it is installed.
set -euo pipefail
cd "$1"
bad=0
fail() {
    echo "$*"
    bad=1
}

mapfile -t sources < <(find core autodiff backend_* collectives examples tests tools .ci CMakeLists.txt \
    \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.def' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' -o -name CMakeLists.txt \
    -o -path 'tools/[a-z]*' ! -name '*.*' -o -path '.ci/*' \) -type f 2>/dev/null | sort)
[ ${#sources[@]} -gt 0 ] || fail "no sources found in $1"
scripts=()
for file in "${sources[@]}"; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 800 ] || fail "$file: $lines lines; a file has at most 800: split it by what its parts are for"
    first=$(head -n 1 "$file")
    case $file in
    *.c | *.h | *.def | *.cpp) [[ $first == '/*'* ]] || fail "$file:1: no head comment; say what the file is for" ;;
    *.cmake | */CMakeLists.txt | CMakeLists.txt) [[ $first == '#'* ]] || fail "$file:1: no head comment; say what the file is for" ;;
    *.py) head -n 3 "$file" | grep -qE '^(#[^!]|"""|r""")' || fail "$file:1: no head comment; say what the file is for" ;;
    *)
        [[ $(sed -n 2p "$file") == '#'* ]] || fail "$file:2: no head comment; say what the file is for"
        [[ $first == '#!'*sh ]] && scripts+=("$file")
        ;;
    esac
done
if command -v shellcheck >/dev/null && [ ${#scripts[@]} -gt 0 ]; then
    shellcheck "${scripts[@]}" || bad=1
fi
[ $bad = 0 ] && echo "${#sources[@]} files, ${#scripts[@]} scripts"
exit $bad
