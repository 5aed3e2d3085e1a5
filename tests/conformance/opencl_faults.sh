#!/bin/bash
# The opencl back end where OpenCL is broken or has rules that this machine's device does not have. Skips, does not
# fail, where there is no OpenCL device to begin with (cases 63, 64).
# run through its link in the build folder, where the programs are
here=$(cd "$(dirname "$0")" && pwd)
suite=$here/all
probe=$here/probe
shim=$here/cl_shim.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

verdict() { # verdict NAME STATUS
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
        sed 's/^/    /' "$work/out" | head -n 20
    fi
}

# says WORD ENV...: opening opencl:0 is refused as MR_UNAVAILABLE, with the word; the list has the reason, and cpu: works
says() {
    local word=$1
    shift
    env "$@" "$probe" opencl:0 > "$work/out" 2>&1
    grep -q '^open opencl:0: MR_UNAVAILABLE' "$work/out" && grep -qF "$word" "$work/out" &&
        grep -q '^open cpu:: MR_OK' "$work/out"
    verdict "$word ($*)" $?
}

if ! "$probe" opencl:0 2> /dev/null | grep -q '^open opencl:0: MR_OK'; then
    echo "no OpenCL device here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

says "no ICD" OCL_ICD_VENDORS="$work/none"
says "no ICD" LD_PRELOAD="$shim" CL_SHIM=no_icd
says "without a device" LD_PRELOAD="$shim" CL_SHIM=no_device
says "unknown target CPU" LD_PRELOAD="$shim" CL_SHIM=bad_build
says "mr_driver_opencl.so" MILLRACE_DRIVERS="$work/empty"

# the suite skips what is not there instead of failing
# (a test of the group that runs on every device: CppUTest calls a run without a test failed)
env LD_PRELOAD="$shim" CL_SHIM=no_icd "$suite" -n MultipliersThatThereAreNotAreRefused > "$work/out" 2>&1 &&
    grep -q 'not tested: opencl: no OpenCL platform' "$work/out"
verdict "suite without a platform" $?

# same results under stricter rules of alignment
for align in 64 1024 2048; do
    env LD_PRELOAD="$shim" CL_SHIM=align=$align "$suite" --only opencl:0 -sg Kernels > "$work/out" 2>&1
    verdict "kernels with views aligned to $align bytes" $?
    env LD_PRELOAD="$shim" CL_SHIM=align=$align "$suite" --only opencl:0 -sn TilesAreTheGoldenModelsBits > "$work/out" 2>&1
    verdict "tiles with views aligned to $align bytes" $?
done

# binaries: written, taken, and thrown away when they are damaged
mkdir "$work/cache"
cached() { env HOME="$work" "$suite" --only "opencl:0?cache=$work/cache" -sn WorkOfAQueueSeesWhatCameBefore > "$work/out" 2>&1; }
cached && [ "$(find "$work/cache" -name '*.bin' | wc -l)" -eq 1 ]
verdict "a binary is kept" $?
stamp=$(stat -c %Y.%s "$work"/cache/*.bin)
cached && [ "$(stat -c %Y.%s "$work"/cache/*.bin)" = "$stamp" ]
verdict "the binary is taken" $?
echo damaged > "$(echo "$work"/cache/*.bin)"
cached
verdict "a damaged binary is not" $?

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
