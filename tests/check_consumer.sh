#!/usr/bin/env bash
# check_consumer.sh - C and C++ projects build against an installed copy and run. ctest: slow
#
# usage: check_consumer.sh SOURCE_FOLDER BUILD_FOLDER
#
# The build is installed below a temporary prefix, which is then moved, since an installed tree
# must not remember where it was built. Each project of tests/consumer is built through
# find_package, then its one source through pkg-config.
set -euo pipefail
source_folder=$1 build=$2
cc=${CC:-cc} cxx=${CXX:-c++} cmake=${CMAKE:-cmake}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix
# A build with sanitizers needs programs that have them too.
sanitize=$(sed -n 's/^FX_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
flags=${sanitize:+-fsanitize=$sanitize}

build_consumer() {
    "$cmake" -S "$source_folder/tests/consumer/$1" -B "$work/$1" -DCMAKE_PREFIX_PATH="$prefix" -DHELLO="$source_folder/examples/01_hello.c" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" &&
        "$cmake" --build "$work/$1"
}
for language in c cpp; do
    build_consumer $language >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    echo "find_package: $("$work/$language/consumer")"
done
# sums of squares, so that a wrong result is seen
is_hello() { [[ $2 == "1 + 4 + 9 + 16 = 30 on "* ]] || { echo "$1: expected 01_hello's sum, 30; got: $2"; exit 1; }; echo "$1: $2"; }
is_hello "find_package, 01_hello" "$("$work/c/hello")"
is_hello "find_package, C++ with a kernel" "$("$work/cpp/consumer" run)"

pc=$(dirname "$(find "$prefix" -name fornax.pc)")
export PKG_CONFIG_PATH=$pc PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
pkg-config --exact-version="$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")" fornax
libdir=$(pkg-config --variable=libdir fornax)
read -r -a options < <(pkg-config --cflags --libs fornax)
for language in c cpp; do
    [ $language = c ] && compiler=("$cc" -std=c11) || compiler=("$cxx" -std=c++17)
    # shellcheck disable=SC2086
    "${compiler[@]}" $flags "$source_folder/tests/consumer/$language/main.$language" -o "$work/$language.out" "${options[@]}"
    echo "pkg-config: $(LD_LIBRARY_PATH=$libdir "$work/$language.out")"
done

# Whoever has the README alone can follow it: its program and the first example build and run.
if [ -e "$source_folder/examples/01_hello.c" ]; then
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$source_folder/README.md" >"$work/readme.c"
    for program in "$work/readme.c" "$source_folder/examples/01_hello.c"; do
        # shellcheck disable=SC2086
        "$cc" -std=c11 -Wall -Wextra -Werror $flags "$program" -o "$work/program.out" "${options[@]}"
        output=$(LD_LIBRARY_PATH=$libdir "$work/program.out")
        case $program in */readme.c) echo "README.md: $output" ;; *) is_hello "pkg-config, 01_hello" "$output" ;; esac
    done
fi
[ ! -e "$build/bin/fornax" ] || "$prefix/bin/fornax" --help >/dev/null
! nm -D --defined-only "$libdir/libfornax.so" | grep -vE ' (fx_[a-z0-9_]+|_init|_fini|_edata|_end|__bss_start)(@|$)' ||
    { echo "libfornax.so shows names that are not fx_*"; exit 1; }
