#!/usr/bin/env bash
# check_configure.sh - BACKEND is obeyed, and what is missing is named with its package.
#
# usage: check_configure.sh SOURCE_FOLDER [BUILD_FOLDER]
set -euo pipefail
source_folder=$1
cmake=${CMAKE:-cmake}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# expect STATUS TEXT OPTIONS...: configuring with the options ends so and says so.
expect() {
    local want=$1 text=$2 got=0
    shift 2
    "$cmake" -S "$source_folder" -B "$work/build" -DBUILD_TESTING=OFF "$@" >"$work/log" 2>&1 || got=1
    # CMake wraps its messages: compare with the spaces run together.
    if [ $got != "$want" ] || ! tr -s ' \n' ' ' <"$work/log" | grep -qF -- "$text"; then
        echo "cmake $*: expected status $want and \"$text\"; got status $got and:"
        cat "$work/log"
        bad=1
    fi
}

expect 0 "cuda no - arrives in a later release" -DBACKEND=auto
expect 0 "cpu yes" -DBACKEND=auto
expect 0 "cpu no - not in BACKEND=vulkan" -DBACKEND=vulkan
expect 0 "vulkan no - not in BACKEND=cpu" -DBACKEND=cpu -DCMAKE_DISABLE_FIND_PACKAGE_Shaderc=ON
expect 1 "the CUDA backend arrives in a later release" -DBACKEND=cuda
expect 1 "the CUDA backend arrives in a later release" -DBACKEND="vulkan;cuda"
expect 1 "the CUDA backend arrives in a later release" -DBACKEND=vulkan,cuda
expect 1 "BACKEND names \"metal\"" -DBACKEND=metal
rm -rf "$work/build"
expect 1 "apt-get install libshaderc-dev" -DBACKEND=vulkan -DCMAKE_DISABLE_FIND_PACKAGE_Shaderc=ON
expect 1 "apt-get install libshaderc-dev" -DBACKEND=all -DCMAKE_DISABLE_FIND_PACKAGE_Shaderc=ON
expect 0 "vulkan no - missing: shaderc" -DBACKEND=auto -DCMAKE_DISABLE_FIND_PACKAGE_Shaderc=ON
rm -rf "$work/build"
# A library that pkg-config does not know is a missing package.
PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH='' expect 1 "apt-get install libjansson-dev libxxhash-dev" -DBACKEND=auto

[ $bad = 0 ] && echo "BACKEND is obeyed"
exit $bad
