#!/bin/sh
# Case 61: a model of one thread and one of two give the same outputs, 20 runs each.
set -u
here=$(dirname "$0")
hashes=$(mktemp)
trap 'rm -f "$hashes"' EXIT
passed=0
failed=0
for program in common_stream common_stream_two; do
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        if MR_HASH_FILE="$hashes" "$here/$program" -sg Reset > /dev/null 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
    done
done
if [ "$(wc -l < "$hashes")" -eq 40 ] && [ "$(sort -u "$hashes" | wc -l)" -eq 1 ]; then
    passed=$((passed + 1))
else
    echo "the runs gave $(sort -u "$hashes" | wc -l) different hashes"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
