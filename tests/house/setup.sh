#!/bin/bash
# What tools/setup does on machines that lack something. The machines are made of empty folders:
# PATH leads to stand-ins for apt-get, sudo, id and the tools, and nothing is installed here.
. tests/house/check.sh

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bash=$(command -v bash)

stand_in() { # name, body
    printf '#!%s\n%s\n' "$bash" "$2" > "$dir/bin/$1"
    chmod +x "$dir/bin/$1"
}

machine() { # fresh folder: the shell's own tools, and a Verilator of the given version
    rm -rf "${dir:?}/bin"
    mkdir "$dir/bin"
    local tool
    for tool in bash awk sort head tail mktemp rm ln env cat true; do
        ln -s "$(type -P $tool)" "$dir/bin/$tool"
    done
    for tool in make gcc g++ pkg-config python3 yosys clang-tidy clang-format cppcheck shellcheck; do
        stand_in $tool 'exit 0'
    done
    stand_in verilator "echo 'Verilator $1 2023-01-22 rev (Debian)'"
    stand_in id 'echo 1000'
    stand_in apt-get "echo \"\$@\" >> $dir/apt; [ \"\$4 \$5\" != \"install -y\" ] || $2"
    : > "$dir/apt"
    mkdir -p "$dir/vendors"
    : > "$dir/vendors/pocl.icd"
}

setup() { PATH="$dir/bin" OCL_ICD_VENDORS="$dir/vendors" "$bash" tools/setup "$@" > "$dir/out" 2>&1; }
says() { grep -q -- "$1" "$dir/out" || { cat "$dir/out"; false; }; }
refuses() { if setup "$@"; then false; else [ "$(wc -l < "$dir/out")" = 1 ]; fi; }
apt_untouched() { [ ! -s "$dir/apt" ]; }

machine 5.006 true
check "nothing to do" setup build test lint
check "nothing said" test ! -s "$dir/out"
check "apt left alone" apt_untouched
check "an unknown group" refuses everything

for version in 4.038 5.004 5.002; do
    machine $version true
    check "Verilator $version" refuses build
    check "the version is named" says "Verilator $version is too old: Millrace needs 5.006 or newer"
done
for version in 5.006 5.020 5.032 6.000; do
    machine $version true
    check "Verilator $version" setup build
done
machine 5.006 true
stand_in verilator "exit 0"
check "a Verilator that is none" refuses build

machine 5.006 true
rm "$dir/bin/yosys" "$dir/bin/cppcheck"
check "neither root nor sudo" refuses lint
check "the one line to run" says "sudo apt-get install -y --no-install-recommends yosys cppcheck$"
check "apt left alone" apt_untouched
check "other groups do not mind" setup build test

stand_in sudo 'exit 1'
check "sudo that asks for a password" refuses lint
check "apt left alone" apt_untouched

machine 5.006 "ln -s $dir/bin/gcc $dir/bin/yosys"
rm "$dir/bin/yosys"
stand_in sudo '[ "$1" = -n ] && shift; exec "$@"'
check "sudo installs" setup lint
check "what is missing, no more" grep -q "install -y --no-install-recommends yosys$" "$dir/apt"

machine 5.006 "ln -s $dir/bin/gcc $dir/bin/yosys"
rm "$dir/bin/yosys"
stand_in id 'echo 0'
check "root installs" setup lint

machine 5.006 true
rm "$dir/bin/yosys"
stand_in id 'echo 0'
if setup lint; then check "apt that installs nothing" false; else
    check "apt that installs nothing" says "still not there after the installation: yosys"
fi

machine 5.006 "exit 100"
rm "$dir/bin/yosys"
stand_in id 'echo 0'
if setup lint; then check "apt that fails" false; else
    check "apt that fails" says "apt could not install them. Run: sudo apt-get"
fi

machine 5.006 true
rm "$dir/vendors/pocl.icd" "$dir/bin/apt-get"
check "a system without apt" refuses build
check "what is missing is named" says "pocl-opencl-icd"
finish
