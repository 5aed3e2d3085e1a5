#!/bin/bash
# What tools/run-tests makes of every kind of test. A runner that lets a bad one pass would hide
# every other failure in the tree, so each kind is tried alone and must decide the last line.
. tests/house/check.sh

root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fake() { # a test with the given body
    printf '#!/bin/bash\n%s\n' "$2" > "$dir/$1"
    chmod +x "$dir/$1"
}

expect() { # last line, exit status, tests...
    local want=$1 status=$2 got code
    shift 2
    got=$(cd "$dir" && "$root/tools/run-tests" --timeout 1 "$@" < /dev/null)
    code=$?
    [ "$(tail -n 1 <<< "$got")" = "$want" ] && [ "$code" = "$status" ] && return 0
    echo "wanted '$want' and status $status, got status $code and:"
    echo "$got"
    return 1
}

fake good 'echo "OK (3 tests, 2 ran, 9 checks, 1 ignored, 0 filtered out, 1 ms)"'
fake colour 'printf "\033[32;1mOK (1 tests, 1 ran, 9 checks, 0 ignored, 0 filtered out, 1 ms)\033[m\n"'
fake script 'echo "4 passed, 0 failed"'
fake skips 'echo "skipped: no GPU"; echo "1 passed, 0 failed, 2 skipped"'
fake twice 'for i in 1 2; do echo "OK (1 tests, 1 ran, 1 checks, 0 ignored, 0 filtered out, 1 ms)"; done'
fake fails 'echo "Errors (2 failures, 5 tests, 5 ran, 9 checks, 0 ignored, 0 filtered out, 1 ms)"; exit 2'
fake fails_and_returns_0 'echo "1 passed, 2 failed"'
fake mixed 'echo "OK (1 tests, 1 ran, 1 checks, 0 ignored, 0 filtered out, 1 ms)"
echo "Errors (1 failures, 1 tests, 1 ran, 1 checks, 0 ignored, 0 filtered out, 1 ms)"; exit 1'
fake crashes 'echo "4 passed, 0 failed"; kill -SEGV $$'
fake silent 'exit 0'
fake talks 'echo "all tests passed, honestly"'
fake early 'echo "4 passed, 0 failed"; echo "and then something else happened"'
fake status 'echo "4 passed, 0 failed"; exit 3'
fake empty 'echo "OK (0 tests, 0 ran, 0 checks, 0 ignored, 0 filtered out, 1 ms)"'
fake ran_nothing 'echo "Errors (ran nothing, 3 tests, 0 ran, 0 checks, 0 ignored, 3 filtered out, 0 ms)"; exit 1'
fake hangs 'sleep 60'
fake hangs_with_child 'echo "1 passed, 0 failed"; sleep 60 & wait'
fake leaves_child 'sleep 60 & echo "1 passed, 0 failed"'
fake reads 'read -r line && echo "1 passed, 0 failed"'
fake noise 'printf "\377\376\n"; echo "1 passed, 0 failed"'
fake unreadable 'echo "1 passed, 0 failed"'
chmod -x "$dir/unreadable"

check "CppUTest's summary" expect "2 passed, 0 failed, 1 skipped" 0 ./good
check "a coloured summary" expect "1 passed, 0 failed" 0 ./colour
check "a script's last line" expect "4 passed, 0 failed" 0 ./script
check "skipped are told" expect "1 passed, 0 failed, 2 skipped" 0 ./skips
check "two summaries in one test" expect "2 passed, 0 failed" 0 ./twice
check "a sum over tests" expect "7 passed, 0 failed, 3 skipped" 0 ./good ./script ./skips
check "bytes that are not UTF-8" expect "1 passed, 0 failed" 0 ./noise
check "failures" expect "3 passed, 2 failed" 1 ./fails
check "failures with status 0" expect "1 passed, 2 failed" 1 ./fails_and_returns_0
check "one bad suite of two" expect "1 passed, 1 failed" 1 ./mixed
check "a crash after the summary" expect "4 passed, 1 failed" 1 ./crashes
check "a silent test" expect "0 passed, 1 failed" 1 ./silent
check "words instead of a summary" expect "0 passed, 1 failed" 1 ./talks
check "a summary that is not last" expect "0 passed, 1 failed" 1 ./early
check "an exit status without failure" expect "4 passed, 1 failed" 1 ./status
check "no test inside" expect "0 passed, 1 failed" 1 ./empty
check "all tests filtered out" expect "0 passed, 1 failed" 1 ./ran_nothing
check "a hanging test" expect "0 passed, 1 failed" 1 ./hangs
check "a hanging test with a child" expect "1 passed, 1 failed" 1 ./hangs_with_child
check "a child left behind" expect "1 passed, 1 failed" 1 ./leaves_child
check "no input to wait for" expect "0 passed, 1 failed" 1 ./reads
check "a test that is not there" expect "0 passed, 1 failed" 1 ./absent
check "a test that cannot be started" expect "0 passed, 1 failed" 1 ./unreadable
check "one bad test among good ones" expect "6 passed, 1 failed, 1 skipped" 1 ./good ./silent ./script
check "no test at all" expect "0 passed, 1 failed" 1
check "a build that failed" expect "4 passed, 1 failed" 1 --build-failed ./script
finish
