#!/usr/bin/env bash
# check_includes.sh - dependencies between folders run one way.
#
# usage: check_includes.sh SOURCE_FOLDER [BUILD_FOLDER]
#
# base <- ops <- graph <- kernel <- compile <- runtime; autodiff sees graph and what is below it;
# nn is written with the public interface; a backend sees fornax/backend.h and core/base;
# nothing sees a backend; examples see public headers only. Vulkan's and CUDA's headers stay in
# their folders. The check reads #include lines, so what it passes holds through every chain.
set -euo pipefail
cd "$1"
bad=0

fail() {
    echo "$1:$2: \"$3\" may not be included here; $4"
    bad=1
}

# For each folder: what it may include, as an extended regular expression over quoted names.
own_allowed() {
    case $1 in
    core/include/fornax) echo '^fornax/(base|array|device|trace|trace_location|transform|nn|io|[a-z_]+)\.h$' ;;
    core/base) echo '^(core/base|fornax)/' ;;
    core/ops) echo '^(core/(base|ops)|fornax)/' ;;
    core/graph) echo '^(core/(base|ops|graph)|fornax)/' ;;
    core/kernel) echo '^(core/(base|ops|graph|kernel)|fornax)/' ;;
    core/compile) echo '^(core/(base|ops|graph|kernel|compile)|fornax)/' ;;
    core/runtime) echo '^(core/(base|ops|graph|kernel|compile|runtime)|fornax)/' ;;
    core/nn) echo '^(core/(base|nn)|fornax)/' ;;
    core/io) echo '^(core/(base|io)|fornax)/' ;;
    core/tools) echo '^(core/(base|ops|graph|kernel|compile|runtime|io|tools)|fornax)/' ;;
    autodiff) echo '^(core/(base|ops|graph)|autodiff|fornax)/' ;;
    backend_*) echo "^(core/base/|$1/|fornax/(base|backend)\\.h\$)" ;;
    examples*) echo "^($1|fornax|stb)/" ;;
    *) echo '' ;;
    esac
}

while IFS= read -r file; do
    folder=$(dirname "$file")
    allowed=$(own_allowed "$folder")
    if [ -z "$allowed" ]; then
        echo "$file: its folder is not in the map of tests/check_includes.sh; add the folder and what it may see"
        bad=1
        continue
    fi
    while IFS=: read -r line text; do
        name=$(sed -E 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]([^>"]*)[>"].*/\1/' <<<"$text")
        case $name in
        vulkan/* | volk.* | shaderc/* | spirv-tools/*)
            [ "$folder" = backend_vulkan ] || fail "$file" "$line" "$name" "only backend_vulkan/ may"
            continue
            ;;
        cuda.h | cuda_*.h | nvrtc.h | nccl.h | cublas*.h)
            [ "$folder" = backend_cuda ] || fail "$file" "$line" "$name" "only backend_cuda/ may"
            continue
            ;;
        fornax/backend.h)
            case $folder in
            core/kernel | core/compile | core/runtime | core/tools | core/base | backend_*) ;;
            *) fail "$file" "$line" "$name" "it is for the compiler, the runtime and backends" ;;
            esac
            continue
            ;;
        esac
        # A bare name beside the including file is its own folder; other angle names are the system's.
        if [[ $name != */* && -e $folder/$name ]]; then continue; fi
        if [[ $text == *'<'* && $name != fornax/* && $name != core/* && $name != backend_* && $name != autodiff/* ]]; then
            continue
        fi
        [[ $name =~ $allowed ]] || fail "$file" "$line" "$name" "allowed in $folder/: $allowed"
    done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' "$file" || true)
done < <(find core autodiff backend_* examples collectives -name '*.[ch]' 2>/dev/null | sort)

[ $bad = 0 ] && echo "includes point one way"
exit $bad
