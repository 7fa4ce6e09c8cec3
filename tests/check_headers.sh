#!/usr/bin/env bash
# check_headers.sh - each public header compiles alone, as C11 and as C++17, without a warning.
#
# usage: check_headers.sh SOURCE_FOLDER BUILD_FOLDER; CC and CXX name the compilers.
set -euo pipefail
cd "$1"
cc=${CC:-cc} cxx=${CXX:-c++}
bad=0 n=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v "$cxx" >/dev/null || { echo "no C++ compiler ($cxx); apt-get install g++"; exit 1; }
for header in core/include/fornax/*.h "$2"/include/fornax/*.h; do
    name=fornax/$(basename "$header")
    # Twice, so that the guard is tried too; one declaration, since an empty unit is not C.
    printf '#include <%s>\n#include <%s>\nextern int fx_header_compiles;\n' "$name" "$name" >"$work/unit.c"
    cp "$work/unit.c" "$work/unit.cpp"
    flags=(-Wall -Wextra -Wshadow -pedantic -Werror -fsyntax-only -Icore/include "-I$2/include")
    "$cc" -std=c11 "${flags[@]}" "$work/unit.c" || { echo "$name does not compile as C11"; bad=1; }
    "$cc" -std=c17 "${flags[@]}" "$work/unit.c" || { echo "$name does not compile as C17"; bad=1; }
    "$cxx" -std=c++17 "${flags[@]}" "$work/unit.cpp" || { echo "$name does not compile as C++17"; bad=1; }
    grep -qE '(#include [<"](vulkan|cuda|volk))|\bVk[A-Z][a-z]|\bCU(device|context|stream|module)' "$header" && { echo "$name shows a backend's types"; bad=1; }
    n=$((n + 1))
done
[ $n -gt 0 ] || { echo "no public headers found"; exit 1; }
[ $bad = 0 ] && echo "$n headers compile as C11, C17 and C++17"
exit $bad
