#!/bin/bash
# The fault runs at a size for CI: golden NICs, and simulated ones where they are there.
# MR_SEED is passed on.
set -u
build=${BUILD:-build}
passed=0 failed=0 skipped=0

run() { # uri requests
    local out
    if out=$(MILLRACE_DRIVERS="$build/lib/millrace" MR_NIC_URI=$1 MR_NIC_REQUESTS=$2 \
        "$build/soak/nic_faults" 2>&1); then
        passed=$((passed + 1))
        echo "$1: $(grep "figure:" <<< "$out" | tr '\n' ';')"
    else
        failed=$((failed + 1))
        echo "$1: $out"
    fi
}

run 'golden?nodes=4' 3000
run 'golden?nodes=9' 500
if [ -e "$build/lib/millrace/libmr_sim_nic.so" ]; then
    run 'sim:nic?nodes=3' 120
else
    echo "skipped: the simulated NIC is not there"
    skipped=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
exit $((failed != 0))
