#!/usr/bin/env python3
"""Register generator: one SystemRDL file becomes an RTL block, a C header and a documentation page.

usage: mr_regs.py SOURCE.rdl --sv OUT.sv --header OUT.h --doc OUT.md

A developer tool: needs `pip install systemrdl-compiler`; its products are committed, so nobody else
needs it. PeakRDL's own RTL exporter writes structs, queues of packages and automatic variables that
Yosys 0.23 does not read, hence this one, which writes the project's synthesisable subset.

What it understands: registers of 32 or 64 bits, fields written and read by software (`sw = rw`,
`hw = r`: an output port) or only read by it (`sw = r`, `hw = w`: an input port), and the four
ap_ctrl_hs registers at 0x00..0x0C, whose special behaviour lives in rtl/common/mr_ap_ctrl.sv. A
field with `swmod` also has a port <name>_swmod_o, high in the first cycle in which a written value stands.
Anything else in the source is an error, never a silent difference.
"""
import argparse
import hashlib
import pathlib
import sys

from systemrdl import RDLCompileError, RDLCompiler
from systemrdl.node import FieldNode, RegNode

TOOL = "tools/regs/mr_regs.py"
AP_CTRL = {
    "CTRL": [("ap_start", 0), ("ap_done", 1), ("ap_idle", 2), ("ap_ready", 3),
             ("auto_restart", 7), ("interrupt", 9)],
    "GIE": [("enable", 0)],
    "IER": [("done", 0), ("ready", 1)],
    "ISR": [("done", 0), ("ready", 1)],
}


class Field:
    def __init__(self, node, reg):
        self.name, self.lsb, self.width = node.inst_name, node.lsb, node.width
        self.desc = node.get_property("desc", default="") or ""
        self.software_writes = node.is_sw_writable
        self.reset = node.get_property("reset", default=0) or 0
        self.swmod = bool(node.get_property("swmod", default=False))
        whole = self.lsb == 0 and self.width == reg.width
        self.port = reg.name.lower() + ("" if whole else "_" + self.name.lower())
        self.whole = whole
        self.access = "rw" if node.is_sw_writable else "ro"
        if node.get_property("onread") is not None:
            self.access += ", cleared by reading"
        if node.get_property("onwrite") is not None:
            self.access = {"woset": "rw, write 1 sets", "wot": "rw, write 1 toggles"}[
                node.get_property("onwrite").name]


class Reg:
    def __init__(self, node):
        self.name, self.offset = node.inst_name, node.address_offset
        self.width = node.get_property("regwidth")
        self.desc = node.get_property("desc", default="") or ""
        self.fields = [Field(f, self) for f in node.fields()]


def fail(text):
    print(f"{TOOL}: {text}", file=sys.stderr)
    sys.exit(1)


def load(path):
    compiler = RDLCompiler()
    try:
        compiler.compile_file(str(path))
        top = compiler.elaborate().top
    except RDLCompileError:
        fail(f"{path}: does not compile")
    ap = bool(top.get_property("ap_ctrl_hs", default=False))
    regs = []
    for node in top.children():
        if not isinstance(node, RegNode) or node.is_array:
            fail(f"{path}: {node.inst_name}: only plain registers are supported")
        reg = Reg(node)
        if reg.width not in (32, 64):
            fail(f"{path}: {reg.name}: width {reg.width} is neither 32 nor 64")
        special = ap and reg.offset < 0x10
        if special and [(f.name, f.lsb) for f in reg.fields] != AP_CTRL.get(reg.name):
            fail(f"{path}: {reg.name}: does not have the ap_ctrl_hs layout")
        for node_field in node.fields():
            if special:
                continue
            for prop in ("onread", "onwrite"):
                if node_field.get_property(prop) is not None:
                    fail(f"{path}: {reg.name}.{node_field.inst_name}: {prop} is not supported")
            rw = node_field.is_sw_writable and not node_field.is_hw_writable
            ro = node_field.is_hw_writable and not node_field.is_sw_writable
            if not (rw or ro):
                fail(f"{path}: {reg.name}.{node_field.inst_name}: neither sw=rw,hw=r nor sw=r,hw=w")
            if node_field.get_property("swmod") and (ro or reg.width != 32):
                fail(f"{path}: {reg.name}.{node_field.inst_name}: swmod is for 32-bit registers that software writes")
            if ro and node_field.get_property("reset") is not None:
                fail(f"{path}: {reg.name}.{node_field.inst_name}: a reset value of an input")
        reg.special = special
        regs.append(reg)
    return top, ap, regs


def bits(width):
    return f"[{width - 1}:0]" if width > 1 else ""


def decl(kind, width, name):
    return f"{kind} logic {bits(width):7}{name}"


def write_sv(top, ap, regs, mark, addr_width):
    prefix = top.inst_name
    plain = [r for r in regs if not r.special]
    outs = [(r, f) for r in plain for f in r.fields if f.software_writes]
    ins = [(r, f) for r in plain for f in r.fields if not f.software_writes]
    o = [f"// {mark}",
         f"// Register block of the {top.get_property('name').lower()}: AXI4-Lite, 32 bit data, {addr_width} bit addresses.",
         "// A write is answered two cycles after address and data are both there, a read one cycle after its",
         "// address. Unmapped addresses read as 0 and ignore writes; every response is OKAY.",
         f"module {prefix}_regs ("]
    ports = [decl("input ", 1, "clk_i"), decl("input ", 1, "rst_ni"),
             decl("input ", addr_width, "awaddr_i"), decl("input ", 1, "awvalid_i"),
             decl("output", 1, "awready_o"), decl("input ", 32, "wdata_i"),
             decl("input ", 4, "wstrb_i"), decl("input ", 1, "wvalid_i"),
             decl("output", 1, "wready_o"), decl("output", 2, "bresp_o"),
             decl("output", 1, "bvalid_o"), decl("input ", 1, "bready_i"),
             decl("input ", addr_width, "araddr_i"), decl("input ", 1, "arvalid_i"),
             decl("output", 1, "arready_o"), decl("output", 32, "rdata_o"),
             decl("output", 2, "rresp_o"), decl("output", 1, "rvalid_o"),
             decl("input ", 1, "rready_i")]
    if ap:
        ports += [decl("output", 1, "ap_start_o"), decl("input ", 1, "ap_ready_i"),
                  decl("input ", 1, "ap_done_i"), decl("input ", 1, "ap_idle_i"),
                  decl("output", 1, "interrupt_o")]
    ports += [decl("output", f.width, f.port + "_o") for _, f in outs]
    mods = [(r, f) for r, f in outs if f.swmod]
    ports += [decl("output", 1, f.port + "_swmod_o") for _, f in mods]
    ports += [decl("input ", f.width, f.port + "_i") for _, f in ins]
    o.append(",\n".join("    " + p for p in ports))
    o += [");", ""]
    a = addr_width
    o += [f"    logic [{a - 1}:2] wr_addr, rd_addr;",
          "    logic        wr_en, rd_en;",
          "    logic [31:0] wr_data, wr_mask, rd_data;",
          "",
          f"    mr_axil_slave #(.AddrWidth({a})) u_axil (",
          "        .clk_i, .rst_ni,",
          "        .awaddr_i, .awvalid_i, .awready_o, .wdata_i, .wstrb_i, .wvalid_i, .wready_o,",
          "        .bresp_o, .bvalid_o, .bready_i, .araddr_i, .arvalid_i, .arready_o,",
          "        .rdata_o, .rresp_o, .rvalid_o, .rready_i,",
          "        .wr_en_o(wr_en), .wr_addr_o(wr_addr), .wr_data_o(wr_data), .wr_mask_o(wr_mask),",
          "        .rd_en_o(rd_en), .rd_addr_o(rd_addr), .rd_data_i(rd_data)",
          "    );", ""]
    if ap:
        o += ["    logic [31:0] ap_rd_data;",
              "    mr_ap_ctrl u_ap_ctrl (",
              "        .clk_i, .rst_ni,",
              f"        .wr_en_i(wr_en && wr_addr[{a - 1}:4] == '0), .wr_addr_i(wr_addr[3:2]),",
              "        .wr_data_i(wr_data), .wr_mask_i(wr_mask),",
              f"        .rd_en_i(rd_en && rd_addr[{a - 1}:4] == '0), .rd_addr_i(rd_addr[3:2]),",
              "        .rd_data_o(ap_rd_data),",
              "        .ap_start_o, .ap_ready_i, .ap_done_i, .ap_idle_i, .interrupt_o",
              "    );", ""]
    else:
        o += ["    logic unused_rd_en;", "    assign unused_rd_en = rd_en;", ""]
    for _, f in outs:
        o.append(f"    logic {bits(f.width):7}{f.port}_q;")
    for _, f in outs:
        o.append(f"    assign {f.port}_o = {f.port}_q;")
    word = lambda off: f"{a - 2}'h{off >> 2:X}"
    for r, f in mods:
        o += [f"    logic       {f.port}_swmod_q;", f"    assign {f.port}_swmod_o = {f.port}_swmod_q;",
              f"    always_ff @(posedge clk_i) {f.port}_swmod_q <= rst_ni && wr_en && wr_addr == {word(r.offset)};"]
    o += ["", "    always_ff @(posedge clk_i) begin", "        if (!rst_ni) begin"]
    for _, f in outs:
        o.append(f"            {f.port}_q <= {f.width}'h{f.reset:X};")
    o += ["        end else if (wr_en) begin", "            case (wr_addr)"]
    for r in plain:
        if not any(f.software_writes for f in r.fields):
            continue
        for w in range(r.width // 32):
            o.append(f"                {word(r.offset + 4 * w)}: begin  // {r.name}" +
                     ("" if r.width == 32 else (" low", " high")[w]))
            for f in r.fields:
                lo, hi = max(f.lsb, 32 * w), min(f.lsb + f.width, 32 * w + 32) - 1
                if lo > hi:
                    continue
                tgt = f.port + "_q" + (f"[{hi - f.lsb}:{lo - f.lsb}]" if f.width > 1 else "")
                src = f"[{hi - 32 * w}:{lo - 32 * w}]" if f.width > 1 else f"[{lo - 32 * w}]"
                o.append(f"                    {tgt} <= ({tgt} & ~wr_mask{src}) | (wr_data{src} & wr_mask{src});")
            o.append("                end")
    o += ["                default: ;", "            endcase", "        end", "    end", "",
          "    always_comb begin", "        rd_data = '0;"]
    o.append("        case (rd_addr)")
    if ap:
        o.append("            " + ", ".join(word(4 * i) for i in range(4)) + ": rd_data = ap_rd_data;")
    for r in plain:
        for w in range(r.width // 32):
            parts, at = [], 32
            for f in sorted(r.fields, key=lambda f: -f.lsb):
                lo, hi = max(f.lsb, 32 * w), min(f.lsb + f.width, 32 * w + 32) - 1
                if lo > hi:
                    continue
                if hi - 32 * w + 1 < at:
                    parts.append(f"{at - (hi - 32 * w + 1)}'b0")
                sig = f.port + ("_q" if f.software_writes else "_i")
                parts.append(sig + (f"[{hi - f.lsb}:{lo - f.lsb}]" if r.width == 64 else ""))
                at = lo - 32 * w
            if at:
                parts.append(f"{at}'b0")
            text = parts[0] if len(parts) == 1 else "{" + ", ".join(parts) + "}"
            o.append(f"            {word(r.offset + 4 * w)}: rd_data = {text};")
    o += ["            default: rd_data = '0;", "        endcase", "    end", "",
          "endmodule", ""]
    return "\n".join(o)


def write_header(top, regs, mark):
    p = "MR_" + top.inst_name.upper()
    guard = p + "_REGS_H"
    o = [f"/* {mark} */", f"/* Register map of the {top.get_property('name').lower()}.",
         " *",
         f" * {p}_REG is a byte offset in s_axi_control (registers of 64 bits: low word there, high word at",
         f" * +4). For a field, _LSB is its lowest bit and _MASK covers it in place. */",
         f"#ifndef {guard}", f"#define {guard}", ""]
    for r in regs:
        o.append(f"/* {r.desc} */")
        o.append(f"#define {p}_{r.name} 0x{r.offset:03X}u")
        for f in r.fields:
            if f.whole:
                if f.software_writes and f.reset:
                    o.append(f"#define {p}_{r.name}_RESET 0x{f.reset:X}u")
                continue
            n = f"{p}_{r.name}_{f.name.upper()}"
            if f.desc:
                o.append(f"/* {f.desc} */")
            o.append(f"#define {n}_LSB {f.lsb}")
            o.append(f"#define {n}_MASK 0x{((1 << f.width) - 1) << f.lsb:08X}u")
        o.append("")
    o += [f"#endif /* {guard} */", ""]
    return "\n".join(o)


def write_doc(top, regs, mark):
    o = [f"<!-- {mark} -->", f"# {top.get_property('name')}: register map", "",
         "AXI4-Lite, 32 bit data. Registers of 64 bits have their low word at the offset shown and",
         "their high word four bytes on. Unmapped addresses read as 0 and ignore writes.", "",
         "| offset | register | bits | field | access | reset | meaning |",
         "|---|---|---|---|---|---|---|"]
    for r in regs:
        o.append(f"| 0x{r.offset:02X} | **{r.name}** | | | | | {r.desc} |")
        for f in r.fields:
            if f.whole and not f.desc:
                o[-1] = (f"| 0x{r.offset:02X} | **{r.name}** | {f.lsb + f.width - 1}:0 | {f.name} | {f.access} | "
                         f"{hex(f.reset) if f.software_writes else ''} | {r.desc} |")
                continue
            span = f"{f.lsb + f.width - 1}:{f.lsb}" if f.width > 1 else f"{f.lsb}"
            rst = hex(f.reset) if f.software_writes else ""
            o.append(f"| | | {span} | {f.name} | {f.access} | {rst} | {f.desc} |")
    o.append("")
    return "\n".join(o)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("source")
    ap.add_argument("--sv", required=True)
    ap.add_argument("--header", required=True)
    ap.add_argument("--doc", required=True)
    args = ap.parse_args()
    source = pathlib.Path(args.source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    mark = f"generated by {TOOL} from {source.as_posix()} sha256:{digest}"
    top, is_ap, regs = load(source)
    pathlib.Path(args.sv).write_text(write_sv(top, is_ap, regs, mark, 12))
    pathlib.Path(args.header).write_text(write_header(top, regs, mark))
    pathlib.Path(args.doc).write_text(write_doc(top, regs, mark))


if __name__ == "__main__":
    main()
