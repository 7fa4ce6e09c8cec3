#!/usr/bin/env bash
# check_resume.sh - a stopped and resumed run of vit_train gives the same losses, bit for bit, as an unbroken one, however it
# was stopped; its checkpoint is whole at any moment; what is no checkpoint of the run is refused with a reason.
#
# ctest: slow
# usage: check_resume.sh SOURCE_FOLDER BUILD_FOLDER
# shellcheck disable=SC2015  # fail counts and nothing else
set -uo pipefail
train=$2/bin/vit_train
[ -x "$train" ] || { echo "SKIPPED: $train is not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export FORNAX_DATA_DIR=$1/data
unset FORNAX_DEVICE
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
device=reference
options=(--model custom --width 16 --depth 1 --heads 2 --batch-size 16 --steps 40 --lr 2e-3 --clip 1 --dropout 0.1 --crop 1 --flip
         --seed 18446744069414584327 --no-eval --device "$device")
run() { "$train" "${options[@]}" "$@" 2>>log; }
losses() { cut -d, -f1-4 "$1"; }
same() { cmp -s <(losses whole.csv) <(losses "$1") || fail "$2: losses differ from the unbroken run's: $(diff <(losses whole.csv) <(losses "$1") | head -3)"; }

run --metrics whole.csv --checkpoint whole.st || fail "the unbroken run: status $?"
[ "$(wc -l <whole.csv)" = 41 ] || fail "the unbroken run's metrics have $(wc -l <whole.csv) lines"

# stop SIGNAL STATUS OPTIONS...: stops a run by SIGNAL once its metrics exist (or, for KILL, its first checkpoint)
stop() {
    local signal=$1 status=$2 wait_for=part.csv
    shift 2
    [ "$signal" = KILL ] && wait_for=part.st
    for _ in 1 2 3 4 5 6; do
        rm -f part.csv part.st
        # a script's background jobs ignore INT, and what is ignored stays so
        env --default-signal=INT "$train" "${options[@]}" --metrics part.csv --checkpoint part.st "$@" 2>>log &
        until [ -e $wait_for ] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
        sleep 0.0$((RANDOM % 9))
        kill -"$signal" $! 2>/dev/null
        wait $!
        got=$?
        [ $got = 0 ] && continue # it was faster
        [ $got = "$status" ] || fail "$signal: exit status $got, expected $status"
        [ -s part.st ] && return 0
    done
    fail "the run was never caught in the middle by $signal"
    return 1
}

for signal in INT:130 TERM:143 HUP:129; do
    if stop "${signal%:*}" "${signal#*:}"; then
        run --metrics part.csv --resume part.st --checkpoint part.st || fail "resume after ${signal%:*}: status $?"
        same part.csv "${signal%:*}"
        cmp -s part.st whole.st || fail "${signal%:*}: the last checkpoint differs from the unbroken run's"
    fi
done

# stopped twice, and killed while it saves
if stop INT 130; then
    env --default-signal=INT "$train" "${options[@]}" --metrics part.csv --resume part.st --checkpoint part.st 2>>log &
    sleep 0.2
    kill -INT $! 2>/dev/null
    wait $!
    [ -s part.st ] && run --metrics part.csv --resume part.st || fail "resume after two stops: status $?"
    same part.csv "two stops"
fi
# killed ROUNDS: so often, at moments that differ; losses and all tensors end as the unbroken run's
killed() {
    for ((round = 1; round <= $1; round++)); do
        if stop KILL 137 --checkpoint-every 1; then
            run --metrics part.csv --resume part.st --checkpoint part.st || fail "$device: resume after KILL: status $?"
            same part.csv "$device: KILL in round $round"
            cmp -s part.st whole.st || fail "$device: KILL in round $round: the last checkpoint differs from the unbroken run's"
            compgen -G 'part.st.*.tmp' >/dev/null && fail "$device: KILL in round $round: temporary files stay: $(ls)"
        fi
    done
}
killed 5

# a killed writer's temporary file goes with the next save; what others own or live processes write stays
dead=999999999 # above any process number
cp whole.st clean.st
live=(clean.st.$$.0.tmp "clean.st.$dead.tmp" "clean.st.$dead.0.tmp.txt" "clean.st.x$dead.0.tmp" "other.st.$dead.0.tmp" "clean.st.$dead.0000.tmp")
touch "${live[@]}" "clean.st.$dead.0.tmp" "clean.st.$dead.12.tmp"
mkdir "clean.st.$dead.3.tmp"
run --resume whole.st --checkpoint clean.st || fail "saving beside old temporary files: status $?"
for name in "${live[@]}" "clean.st.$dead.3.tmp"; do [ -e "$name" ] || fail "a save removed $name"; done
for n in 0 12; do [ -e "clean.st.$dead.$n.tmp" ] && fail "a save left clean.st.$dead.$n.tmp of a dead process"; done
rm -rf clean.st.*

# a finished run has nothing to do
cp whole.csv again.csv
run --metrics again.csv --resume whole.st || fail "resuming a finished run: status $?"
cmp -s whole.csv again.csv || fail "resuming a finished run changed its metrics"

# an ignored signal stays ignored
(trap '' INT; exec "$train" "${options[@]}" --metrics ignored.csv 2>>log) &
sleep 0.2
kill -INT $!
wait $! || fail "an ignored INT stopped the run: status $?"
same ignored.csv "ignored INT"

# refused(NAME, TEXT, OPTIONS): status 1 and a line with TEXT
refused() {
    local name=$1 text=$2
    shift 2
    "$train" "${options[@]}" "$@" >out 2>err
    local got=$?
    [ $got = 1 ] || fail "$name: exit status $got, expected 1"
    grep -q -- "$text" err || fail "$name: expected \"$text\"; got: $(head -c 300 err)"
}
size=$(stat -c %s whole.st)
head -c $((size / 2)) whole.st >cut.st
head -c $((size - 1)) whole.st >short.st
: >empty.st
cp "$1/tests/golden/vit.safetensors" foreign.st
refused "half a checkpoint" cut.st --resume cut.st
refused "a checkpoint without its last byte" short.st --resume short.st
refused "an empty checkpoint" empty.st --resume empty.st
refused "no checkpoint" "No such file" --resume none.st
refused "weights only" "not a checkpoint" --resume foreign.st
refused "other options" "other options" --resume whole.st --momentum 0.5

# no room: the old checkpoint stays
cp whole.st kept.st
(ulimit -f 8 && "$train" "${options[@]}" --resume whole.st --checkpoint kept.st 2>err)
got=$?
[ $got = 1 ] || fail "a save that did not fit: exit status $got, expected 1"
cmp -s kept.st whole.st || fail "a save that did not fit changed the old checkpoint"
grep -q "kept.st" err || fail "a save that did not fit: no message names the file: $(tail -n 1 err)"
compgen -G 'kept.st.*' >/dev/null && fail "a temporary file is left: $(ls)"
if [ -w /dev/full ]; then
    "$train" "${options[@]}" --json >/dev/full 2>err && fail "JSON to a full device: exit status 0"
    grep -q "standard output" err || fail "JSON to a full device: no message"
fi

# the same on lavapipe, whose kernels add in a fixed order
device=$("$2/bin/fornax" devices | sed -n 's/^\(vulkan:[0-9]*\) *llvmpipe.*/\1/p' | head -n 1)
if [ -n "$device" ]; then
    options[${#options[@]}-1]=$device
    run --metrics whole.csv --checkpoint whole.st || fail "$device: the unbroken run: status $?"
    run --metrics part.csv --checkpoint part.st || fail "$device: the unbroken run again: status $?"
    same part.csv "$device: a second unbroken run"
    cmp -s part.st whole.st || fail "$device: two unbroken runs differ"
    killed 3
fi

[ $failures = 0 ] && echo "resumed runs are exact on reference${device:+ and $device}"
[ $failures = 0 ]
