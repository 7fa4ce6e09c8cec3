#!/usr/bin/env bash
# check_signals.sh - however vit_train is ended, or kept from writing, it says so, leaves a whole checkpoint or the one that was
# there, and ends with the right status: signals at any moment, a reader that goes away, a pause, a full disk.
#
# ctest: slow
# usage: check_signals.sh SOURCE_FOLDER BUILD_FOLDER
# shellcheck disable=SC2015  # fail counts and nothing else
set -uo pipefail
train=$2/bin/vit_train
[ -x "$train" ] || { echo "SKIPPED: $train is not built"; exit 77; }
work=$(mktemp -d)
trap 'umount "$work/disk" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export FORNAX_DATA_DIR=$1/data
unset FORNAX_DEVICE
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
lavapipe=$("$2/bin/fornax" devices | sed -n 's/^\(vulkan:[0-9]*\) *llvmpipe.*/\1/p' | head -n 1)
options=(--model custom --width 16 --depth 1 --heads 2 --batch-size 16 --seed 3)
# A script's background jobs ignore INT, and a shell that is killed before it becomes another program runs this one's trap.
start() {
    env --default-signal=INT "$train" "${options[@]}" "$@" >out 2>err & pid=$!
    while [ "$(readlink /proc/$pid/exe)" = "$(readlink /proc/$$/exe)" ]; do :; done
}
until_there() { until [ -e "$1" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done; }
# whole FILE: vit_train itself takes it as a checkpoint
whole() { "$train" "${options[@]}" --device reference --steps 1 --no-eval --weights "$1" 2>whole.err; }

for device in reference $lavapipe; do
    run=(--device "$device" --steps 100000)
    # a signal before, while and after compiling: the status is the signal's, and a checkpoint is whole or absent
    for wait in 0 0.02 0.1 0.3 0.6; do
        for signal in INT:130 TERM:143; do
            rm -f a.st
            start "${run[@]}" --no-eval --checkpoint a.st
            sleep $wait
            kill -"${signal%:*}" $pid
            wait $pid
            got=$?
            [ $got = "${signal#*:}" ] || fail "$device: ${signal%:*} after $wait s: status $got: $(tail -n 1 err)"
            [ ! -e a.st ] || whole a.st || fail "$device: ${signal%:*} after $wait s: the checkpoint is damaged: $(cat whole.err)"
        done
    done
    # a signal during tests, and during saves
    for extra in "--eval-every 1" "--no-eval --checkpoint-every 1"; do
        rm -f a.st
        # shellcheck disable=SC2086  # two words
        start "${run[@]}" --metrics a.csv --checkpoint a.st $extra
        until grep -q "test accuracy" err || [ -e a.st ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
        sleep 0.1
        kill -INT $pid
        wait $pid
        got=$?
        [ $got = 130 ] || fail "$device: INT with $extra: status $got: $(tail -n 1 err)"
        grep -q "stopping after this step" err && grep -q "checkpoint of step" err || fail "$device: INT with $extra: no message: $(cat err)"
        whole a.st || fail "$device: INT with $extra: no whole checkpoint: $(cat whole.err err)"
        compgen -G 'a.st.*.tmp' >/dev/null && fail "$device: INT with $extra leaves a temporary file"
    done
    # nothing was trained: an older checkpoint of that name stays
    cp a.st old.st
    cp a.st a.old
    start "${run[@]}" --checkpoint old.st
    kill -TERM $pid
    wait $pid
    cmp -s old.st a.old || [ "$(grep -c 'step [1-9][0-9]* in old.st' err)" = 1 ] || fail "$device: TERM at the start changed the old checkpoint"
done
device=reference

# the second one ends it at once, with the first one's checkpoint or the one before it whole
for _ in 1 2 3; do
    start --device reference --steps 100000 --no-eval --metrics b.csv --checkpoint b.st --checkpoint-every 1
    until_there b.st
    kill -INT $pid
    kill -INT $pid 2>/dev/null
    wait $pid
    got=$?
    [ $got = 130 ] || fail "two INTs: status $got: $(tail -n 1 err)"
    whole b.st || fail "two INTs: no whole checkpoint: $(cat whole.err)"
done

# paused: rates and the remaining time are those of the running process
start --device reference --steps 2000 --no-eval --json --metrics c.csv
until_there c.csv
sleep 0.5
kill -STOP $pid
sleep 3
kill -CONT $pid
wait $pid || fail "STOP and CONT: status $?: $(cat err)"
# from the CSV: the longest gap between steps is the pause; without it, the mean is what the run says
awk -F, -v said="$(sed -n 's/.*"mean_step_seconds": \([0-9.]*\).*/\1/p' out)" '
    NR > 1 { gap = $5 - last; if ($1 > 10 && gap > pause) pause = gap; if ($1 == 10) from = $5; last = $5 }
    END { mean = (last - from - pause) / (NR - 11); if (pause >= 2.9 && !(said > 0 && said < 2 * mean)) { print said, mean, pause; exit 1 } }' c.csv ||
    fail "a pause counts as training"

# a reader that goes away: ended by PIPE as others are, with a checkpoint
for stream in json text; do
    rm -f d.st
    if [ $stream = json ]; then
        "$train" "${options[@]}" --device reference --steps 100000 --no-eval --json --checkpoint d.st 2>err | head -n 1 >/dev/null
    else
        # the third line comes after the first epoch, when there is something to keep
        "$train" "${options[@]}" --device reference --steps 100000 --eval-every 1 --checkpoint d.st 2>&1 | head -n 3 >/dev/null
    fi
    got=${PIPESTATUS[0]}
    [ "$got" = 141 ] || fail "$stream to a reader that goes away: status $got: $(cat err)"
    whole d.st || fail "$stream to a reader that goes away: no whole checkpoint: $(cat whole.err)"
done

# no room. full STATUS TEXT FILE OPTIONS...: the message names the file
full() {
    local status=$1 text=$2
    shift 2
    "$train" "${options[@]}" --device reference --steps 30 --no-eval "$@" >out 2>err
    got=$?
    [ $got = "$status" ] || fail "$text: status $got, expected $status: $(tail -n 2 err)"
    grep -q -- "$text.*No space left" err || fail "expected \"$text ... No space left\"; got: $(cat err)"
}
no_room() { # FULL: a device or file that takes nothing
    rm -f e.st
    full 1 "metrics $1" --metrics "$1" --checkpoint e.st
    whole e.st || fail "metrics without room: no whole checkpoint: $(cat whole.err)"
    FORNAX_TRACE=$1 full 0 "FORNAX_TRACE: $1" --checkpoint e.st
    full 1 "$1" --plot "$1"
    full 1 "$1" --checkpoint "$1"
}
[ -w /dev/full ] && no_room /dev/full
mkdir disk
if mount -t tmpfs -o size=256k tmpfs disk 2>/dev/null; then
    cp e.st disk/f.st
    cp e.st f.st
    head -c 1000000 /dev/zero >disk/filler 2>/dev/null
    full 1 "disk/f.st" --checkpoint disk/f.st
    cmp -s disk/f.st f.st || fail "a full disk: the old checkpoint is gone"
    compgen -G 'disk/f.st.*' >/dev/null && fail "a full disk: a temporary file stays"
    full 1 "metrics disk/m.csv" --metrics disk/m.csv --checkpoint g.st
    whole g.st || fail "metrics on a full disk: no whole checkpoint: $(cat whole.err)"
    FORNAX_TRACE=disk/t.json full 0 "FORNAX_TRACE: disk/t.json" --checkpoint g.st
    rm disk/filler
    "$train" "${options[@]}" --device reference --steps 30 --no-eval --checkpoint disk/f.st 2>err || fail "room again: $(cat err)"
fi

[ $failures = 0 ] && echo "vit_train ends as it should on reference${lavapipe:+ and $lavapipe}"
[ $failures = 0 ]
