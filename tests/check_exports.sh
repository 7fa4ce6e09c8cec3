#!/usr/bin/env bash
# check_exports.sh - libfornax.so exports what the public headers declare, all of it and nothing else; and each traced
# function has the macro that notes its caller's location.
#
# usage: check_exports.sh SOURCE_FOLDER BUILD_FOLDER; CC names the compiler.
set -euo pipefail
cd "$1"
build=$2 cc=${CC:-cc}
library=$(find "$build" -maxdepth 1 -name 'libfornax.so' | head -n 1)
[ -n "$library" ] || { echo "no libfornax.so in $build"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers=(core/include/fornax/*.h "$build"/include/fornax/*.h)

# The preprocessor expands what X-macros declare; -D_ marks FX_API, which would otherwise become an attribute.
for header in "${headers[@]}"; do
    printf '#include <fornax/%s>\n' "$(basename "$header")"
done | "$cc" -std=c11 -E -P -DFORNAX_NO_LOCATIONS -Icore/include "-I$build/include" -x c - >"$work/text"
# One declaration a line, then the name before the first parenthesis of each exported one.
tr '\n' ' ' <"$work/text" | tr ';' '\n' | grep 'visibility("default")' |
    sed -E 's/__attribute__\(\([a-z]*\(("default"|printf, [0-9]+, [0-9]+|__printf__, [0-9]+, [0-9]+)\)\)\)//g' |
    sed -nE 's/^[^(]*\<(fx_[a-z0-9_]+)[[:space:]]*\(.*/\1/p' | sort -u >"$work/declared"
nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' |
    grep -vE '^(_init|_fini|_edata|_end|__bss_start|__asan.*|__odr_asan.*|__ubsan.*|__tsan.*)$' | sort -u >"$work/exported"

bad=0
missing=$(comm -23 "$work/declared" "$work/exported")
extra=$(comm -13 "$work/declared" "$work/exported")
[ -z "$missing" ] || { echo "declared, but not in libfornax.so:"; echo "$missing"; bad=1; }
[ -z "$extra" ] || { echo "in libfornax.so, but in no public header:"; echo "$extra"; bad=1; }
n=$(wc -l <"$work/declared")
[ "$n" -ge 200 ] || { echo "only $n declarations found; this script no longer understands the headers"; bad=1; }

# Every function of trace.h and trace_ops.h that makes values in a trace.
printf '#include <fornax/trace.h>\n' >"$work/trace.c"
"$cc" -std=c11 -E -dM -Icore/include "-I$build/include" "$work/trace.c" |
    sed -nE 's/^#define (fx_[a-z0-9_]+)\(\.\.\.\) FX_HERE.*/\1/p' | sort -u >"$work/located"
"$cc" -std=c11 -E -P -DFORNAX_NO_LOCATIONS -Icore/include "-I$build/include" "$work/trace.c" | tr '\n' ' ' | tr ';' '\n' |
    sed 's/__attribute__((visibility("default")))//g' |
    sed -nE 's/^[[:space:]]*(fx_val[[:space:]]+(fx_[a-z0-9_]+)\(|void[[:space:]]+(fx_(reduce_fn|sort_by|top_k|cond|switch|while|scan|optimization_barrier|call))\().*/\2\3/p' |
    sort -u >"$work/traced"
unlocated=$(comm -23 "$work/traced" "$work/located")
[ -z "$unlocated" ] || { echo "no macro in trace_location.h for:"; echo "$unlocated"; bad=1; }
[ "$(wc -l <"$work/traced")" -ge 100 ] || { echo "this script no longer understands trace.h"; bad=1; }

[ $bad = 0 ] && echo "$n functions declared and exported; $(wc -l <"$work/traced") traced ones note their caller"
exit $bad
