#!/usr/bin/env bash
# check_env.sh - docs/environment.md and the README's table are what the table of variables says.
#
# usage: check_env.sh SOURCE_FOLDER BUILD_FOLDER
#
# With FX_WRITE_DOCS=1 in the environment both are written instead of compared: do that after a change of env.def.
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$2/bin/fornax" env markdown >"$work/page"
grep '^|' "$work/page" >"$work/table"
awk -v table="$work/table" '
    BEGIN { while ((getline line <table) > 0) rows = rows line "\n" }
    /^<!-- environment table -->$/ { print; printf "%s", rows; inside = 1; found++; next }
    /^<!-- \/environment table -->$/ { inside = 0; found++ }
    !inside
    END { exit found != 2 }' README.md >"$work/readme" || { echo "README.md: the markers of the environment table are gone"; exit 1; }
if [ "${FX_WRITE_DOCS:-}" = 1 ]; then
    cp "$work/page" docs/environment.md
    cp "$work/readme" README.md
    exit
fi
diff -u docs/environment.md "$work/page" || { echo "docs/environment.md is not current: FX_WRITE_DOCS=1 ctest -R check_env"; exit 1; }
diff -u README.md "$work/readme" || { echo "README.md is not current: FX_WRITE_DOCS=1 ctest -R check_env"; exit 1; }
echo "the pages of environment variables are current"
