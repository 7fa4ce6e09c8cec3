#!/usr/bin/env bash
# check_vit.sh - vit_train and vit_infer as programs: what command lines they take and refuse, what they print off a terminal,
# JSON that parses, the C locale's numbers everywhere, and that what was trained is recognised.
#
# usage: check_vit.sh SOURCE_FOLDER BUILD_FOLDER
# shellcheck disable=SC2015  # fail counts and nothing else
set -uo pipefail
train=$2/bin/vit_train infer=$2/bin/vit_infer
[ -x "$train" ] && [ -x "$infer" ] || { echo "SKIPPED: vit_train and vit_infer are not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export FORNAX_DATA_DIR=$1/data
unset FORNAX_DEVICE
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
small=(--model custom --width 16 --depth 1 --heads 2 --batch-size 32 --device reference --no-eval)

# refuse(TEXT, ARGUMENTS): status 2 and one line that names the option
refuse() {
    local text=$1
    shift
    "$train" "$@" >out 2>err
    local got=$?
    [ $got = 2 ] && [ "$(wc -l <err)" = 1 ] && grep -q -- "$text" err && [ ! -s out ] ||
        fail "vit_train $*: status $got, \"$(head -c 200 err)\""
}
for v in 3x2 '' '  7' '7 ' -1 0 0x10 1e3 3.5 99999999999999999999 2147483648 $'32\r' ٣ '7 8'; do
    refuse --batch-size "${small[@]:0:2}" --batch-size "$v"
    refuse --batch-size --batch-size="$v"
done
for v in nan inf -0.1 1e-400 1e400 1e-3x 0,5 1_000 0x1p-2 ''; do refuse --lr --lr "$v"; done
for v in 1.0 1.5; do refuse --dropout --dropout $v; done
for v in -1 +1 18446744073709551616 1.0 ''; do refuse --seed --seed "$v"; done
refuse --batch-size --batch-size
refuse --bogus --bogus 1
refuse --step --step 3
refuse "given twice" --steps 3 --steps 4
refuse unexpected file.png
refuse --optimizer --optimizer sdg
refuse --model --model tinny
refuse --precision --precision f64
refuse --schedule --schedule cos
refuse "width" --model custom
refuse "both" --steps 1 --epochs 1
refuse "checkpoint-every" --checkpoint-every 3
for v in .5 5. 0; do "$train" "${small[@]}" --steps 1 --lr $v 2>err || fail "--lr $v: $(tail -n 1 err)"; done
for v in 0 18446744073709551615; do "$train" "${small[@]}" --steps 1 --seed $v 2>err || fail "--seed $v: $(tail -n 1 err)"; done
"$train" "${small[@]}" --batch-size=1 --steps 1 2>err && fail "--batch-size given twice is taken"
"$train" --model micro --device reference --batch-size 5000 2>err && fail "a batch larger than the data set is taken"
grep -q "1438 training images" err || fail "a batch larger than the data set: $(cat err)"
"$train" --classes 5 "${small[@]}" 2>err && fail "another number of classes than the data's is taken"
grep -q "10 classes; 5 classes" err || fail "--classes 5: $(cat err)"
mkdir idx
for part in train t10k; do
    cp "$1/data/digits/images-idx3-ubyte" idx/$part-images-idx3-ubyte
    cp "$1/data/digits/labels-idx1-ubyte" idx/$part-labels-idx1-ubyte
done
"$train" --data idx:idx --classes 5 "${small[@]}" 2>err && fail "labels beyond --classes are taken"
grep -q "label 5 of sample 5;" err || fail "labels beyond --classes: $(cat err)"

# each option that is parsed is in the help, and the other way round
"$train" --help >help || fail "--help: status $?"
[ "$(grep -c '^  --' help)" = "$(($(grep -c '{"[a-z0-9-]*", OPTION_' "$1/examples/vit/vit_train.c") + 1))" ] || fail "--help lacks options"

# off a terminal: no control characters, few lines; JSON lines that parse; numbers as in the C locale
"$train" "${small[@]}" --steps 300 --metrics a.csv 2>err || fail "300 steps: $(tail -n 1 err)"
grep -q $'[\r\033]' err && fail "control characters in a log"
[ "$(wc -l <err)" -lt 40 ] || fail "$(wc -l <err) lines for 300 steps"
LC_ALL=de_DE.UTF-8 "$train" "${small[@]}" --steps 300 --metrics b.csv --json --checkpoint m.st --eval-every 3 >json 2>err || fail "--json: $(cat err)"
cmp -s <(cut -d, -f1-4 a.csv) <(cut -d, -f1-4 b.csv) || fail "another locale, other losses"
[ -s err ] && fail "--json writes to the standard error: $(head -n 1 err)"
python=$(command -v python3) && { "$python" -c 'import json,sys; [json.loads(l, parse_constant=lambda c: 1/0) for l in open("json")]' ||
    fail "--json: not JSON"; }
"$train" "${small[@]}" --optimizer sgd --lr 900 --steps 100 --json >json 2>err
grep -qi 'nan\|inf' json && fail "NaN in JSON"

# inference
"$infer" --weights m.st --device reference --data digits --json >out 2>err || fail "vit_infer: $(cat err)"
right=$(sed 's/.*"label": \([0-9]*\), "predictions": \[{"label": \([0-9]*\).*/\1 \2/' out | awk '$1 == $2' | wc -l)
[ "$right" -ge 180 ] || fail "vit_infer: $right of 359 right after 300 steps"
"$infer" --weights m.st --device reference --data digits --count 2 >out 2>err && grep -q "of 2 right" out || fail "vit_infer --count: $(cat err)"
# wrong STATUS TEXT ARGUMENTS
wrong() {
    local status=$1 text=$2
    shift 2
    "$infer" "$@" >out 2>err
    local got=$?
    [ $got = "$status" ] && grep -q -- "$text" err || fail "vit_infer $*: status $got, \"$(head -c 200 err)\""
}
wrong 2 --weights x.png
wrong 2 neither --weights m.st
wrong 2 both --weights m.st --data digits x.png
wrong 2 --count --weights m.st --count 3 x.png
wrong 1 "No such file" --weights none.st x.png
wrong 1 "No such file" --weights m.st --device reference none.png
wrong 1 "heads" --weights "$1/tests/golden/vit.safetensors" --device reference x.png
wrong 1 "16x16x3" --weights "$1/tests/golden/vit.safetensors" --heads 4 --device reference --data digits
wrong 1 "neither a checkpoint" --weights "$1/tests/golden/optimizers.safetensors" --device reference x.png
"$infer" --weights "$1/tests/golden/vit.safetensors" --heads 4 --device reference --data random --count 2 --json >out 2>err &&
    [ "$(grep -c '"probability"' out)" = 2 ] || fail "weights by Hugging Face's names: $(cat err)"

[ $failures = 0 ] && echo "vit_train and vit_infer behave"
[ $failures = 0 ]
