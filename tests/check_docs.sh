#!/usr/bin/env bash
# check_docs.sh - the documents name files, functions and links that exist.
#
# usage: check_docs.sh SOURCE_FOLDER BUILD_FOLDER
#
# In README.md and docs/*.md: `folder/file.c` is a path in the tree, `file.c` a file somewhere in it (NAME stands for any name,
# FILE.* patterns may match several), `fx_...` is a name that some source declares, [text](page.md) is a page beside it.
# shellcheck disable=SC2016  # backquotes are the page's, not the shell's
set -euo pipefail
cd "$1"
bad=0
sources=$(mktemp)
trap 'rm -f "$sources"' EXIT
cat core/include/fornax/*.h "$2"/include/fornax/*.h core/*/*.h autodiff/*.h core/ops/*.def core/graph/*.def >"$sources"
mapfile -t files < <(find . -path ./build -prune -o -path ./.git -prune -o -type f -print | sed 's|^\./||')

for page in README.md docs/*.md; do
    while IFS= read -r name; do
        pattern=${name//NAME/*}
        found=
        for file in "${files[@]}"; do
            # shellcheck disable=SC2053  # the name may be a pattern
            if [[ $file == $pattern || $file == */$pattern ]]; then found=yes; break; fi
        done
        [ -n "$found" ] || [ -e "$2/include/$name" ] || { echo "$page: there is no file $name"; bad=1; }
    done < <(grep -oE '`[A-Za-z0-9_./*-]+\.(c|h|def|inc|sh|cmake|md|in)`' "$page" | tr -d '`' | grep -v 'hello\.c' | sort -u)
    while IFS= read -r name; do
        grep -qE "\b$name\b" "$sources" || { echo "$page: nothing declares $name"; bad=1; }
    done < <(grep -oE '\bfx_[a-z0-9_]+\b' "$page" | grep -vE '_$|^fx_hypot$' | sort -u)
    while IFS= read -r link; do
        [ -e "$(dirname "$page")/$link" ] || { echo "$page: there is no page $link"; bad=1; }
    done < <(grep -oE '\]\([^)#:]+\)' "$page" | sed -E 's/^\]\(|\)$//g' | sort -u)
done
[ $bad = 0 ] && echo "documents name what exists"
exit $bad
