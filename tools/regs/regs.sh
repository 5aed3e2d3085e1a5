#!/bin/sh
# Regenerate every register block from its SystemRDL source; run from the repository root.
set -eu
mkdir -p docs
python3 tools/regs/mr_regs.py rtl/rgu/rgu.rdl --sv rtl/rgu/rgu_regs.sv \
    --header host/include/millrace/rgu_regs.h --doc docs/rgu-registers.md
python3 tools/regs/mr_regs.py rtl/nic/nic.rdl --sv rtl/nic/nic_regs.sv \
    --header host/include/millrace/nic_regs.h --doc docs/nic-registers.md
python3 tools/regs/mr_regs.py rtl/pnm/pnm.rdl --sv rtl/pnm/pnm_regs.sv \
    --header host/include/millrace/pnm_regs.h --doc docs/pnm-registers.md
