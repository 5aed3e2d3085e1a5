#!/usr/bin/env python3
"""What `millrace nic replay` must refuse: one clear line, a non-zero exit, nothing left behind."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import Place, main, refuse, run, succeed  # noqa: E402
from nic import frame as f, pcap, traffic  # noqa: E402

rng = files.seeded()
WORLD = traffic.World(rng)
NODES = [{"rank": r, "mac": "02:00:00:00:00:%02x" % r, "ip": "10.0.0.%d" % (r + 1), "port": 19794} for r in range(4)]
GOOD = {"nodes": NODES, "jobs": [{"job": 1, "members": [0, 1, 2], "root": 0}],
        "kv": [{"job": 1, "layer": 0, "block": 7, "owner": 1, "replicas": [2], "epoch": 3, "bytes": 4096}]}
FRAMES = pcap.write([(10 ** 9 + i, WORLD.query()) for i in range(5)])
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Run:
    """The command's arguments in a folder of their own; what is given here replaces what is good."""

    def __init__(self, place, tables=None, network=None, host=None, **options):
        text = tables if isinstance(tables, bytes) else json.dumps(GOOD if tables is None else tables).encode()
        self.options = {"--rank": "1", "--config": place.file("config.json", text),
                        "--in": place.file("a.pcap", FRAMES if network is None else network), "--out": place.name("b.pcap"),
                        "--host-in": place.file("c.pcap", FRAMES if host is None else host),
                        "--host-out": place.name("d.pcap"), "--device": "golden"}
        self.options.update({"--" + k.replace("_", "-"): v for k, v in options.items()})

    def args(self):
        return ["nic", "replay", *[x for k, v in self.options.items() if v is not None for x in (k, v)]]


def refused(words, code=None, **what):
    with Place() as p:
        refuse(words, *Run(p, **what).args(), code=code, place=p)


def changed(change):
    config = json.loads(json.dumps(GOOD))
    change(config)
    return config


def bad_config(words, change):
    refused(["config.json", *words], tables=changed(change), code=3)


def row(section, index=0, **fields):
    """A change of one row; a value of None takes the key away."""
    def change(c):
        for name, value in fields.items():
            if value is None:
                del c[section][index][name]
            else:
                c[section][index][name] = value
    return change


@test
def good_input_is_taken():
    with Place() as p:
        r = Run(p)
        succeed(*r.args())
        assert p.listing() == ["a.pcap", "b.pcap", "c.pcap", "config.json", "d.pcap"]
        for config in (changed(lambda c: c.pop("kv")), {**GOOD, "kv": []}, {**GOOD, "jobs": [], "kv": []},
                       {**GOOD, "nodes": NODES[::-1]}):
            succeed(*Run(p, config).args())
        for empty in (pcap.write([]), pcap.write([], ">", True)):
            succeed(*Run(p, network=empty, host=empty).args())


@test
def not_json():
    for text in (b"", b"{", b"[]", b"7", b"null", b'"nodes"', b"{}x", json.dumps(GOOD).encode()[:-1], b"\xff\xfe", b"\0",
                 b'{"nodes":[],}', b"[" * 100000):
        refused("config.json", tables=text, code=3)
    refused(["config.json"], tables=json.dumps(GOOD).encode()[:-1] + b',"kv":[]}', code=3)


@test
def unknown_and_missing_keys():
    bad_config(["speed"], lambda c: c.update(speed=1))
    for section, names in (("nodes", ("rank", "mac", "ip", "port")), ("jobs", ("job", "members", "root")),
                           ("kv", ("job", "layer", "block", "owner", "replicas", "epoch", "bytes"))):
        bad_config(["colour"], row(section, colour="red"))
        for name in names:
            if name in ("port", "replicas", "epoch"):
                continue        # these have a value of their own where none is given
            bad_config([name], row(section, **{name: None}))
    bad_config(["nodes"], lambda c: c.pop("nodes"))


@test
def wrong_types():
    wrong = ("x", 1.5, None.__class__, [], {}, True, -1, 2 ** 62)
    for section, name in (("nodes", "rank"), ("nodes", "port"), ("jobs", "job"), ("jobs", "root"), ("kv", "job"),
                          ("kv", "layer"), ("kv", "block"), ("kv", "owner"), ("kv", "epoch"), ("kv", "bytes")):
        for value in wrong:
            value = None if value is type(None) else value

            def change(c, value=value):
                c[section][0][name] = value
            bad_config([name], change)
    bad_config(["integer"], row("nodes", rank=2 ** 64))
    for section, name in (("jobs", "members"), ("kv", "replicas")):
        for value in (0, "x", {}, None, ["x"], [1.5], [[]], [-1], [True]):
            def change(c, value=value):
                c[section][0][name] = value
            bad_config([name], change)
    for name in ("nodes", "jobs", "kv"):
        for value in (0, "x", {}, None, [1], ["x"], [[]], [None]):
            bad_config([name], lambda c: c.update({name: value}))


@test
def numbers_out_of_range():
    for section, name, beyond in (("nodes", "rank", 256), ("nodes", "port", 65536), ("nodes", "port", 0), ("jobs", "job", 65536),
                                  ("kv", "layer", 65536), ("kv", "block", 2 ** 32), ("kv", "epoch", 2 ** 32), ("kv", "bytes", 0),
                                  ("kv", "bytes", 2 ** 32 + 1), ("kv", "job", 65536)):
        bad_config([name], row(section, **{name: beyond}))


@test
def addresses():
    for mac in ("", "02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00:00:00:0g", "02-00-00-00-00-00", "020000000000",
                "2:0:0:0:0:0x", " 02:00:00:00:00:00", "02:00:00:00:00:000", 7):
        bad_config(["mac"], row("nodes", mac=mac))
    for ip in ("", "10.0.0", "10.0.0.1.2", "10.0.0.256", "10.0.0.-1", "10.0.0.x", "::1", "10..0.1", " 10.0.0.1", 7):
        bad_config(["ip"], row("nodes", ip=ip))


@test
def duplicate_ranks():
    bad_config(["nodes[1].rank"], row("nodes", 1, rank=0))
    bad_config(["nodes[4].rank"], lambda c: c["nodes"].append(dict(NODES[3])))
    bad_config(["members"], row("jobs", members=[0, 1, 1]))
    bad_config(["jobs[1].job"], lambda c: c["jobs"].append(dict(GOOD["jobs"][0])))


@test
def unknown_members():
    bad_config(["members", "9"], row("jobs", members=[0, 1, 9]))
    bad_config(["root", "9"], row("jobs", root=9))
    bad_config(["owner", "9"], row("kv", owner=9))
    bad_config(["replicas", "9"], row("kv", replicas=[2, 9]))
    bad_config(["job", "5"], row("kv", job=5))
    bad_config(["members"], row("jobs", members=[]))
    refused(["9"], rank="9")


@test
def more_than_32_shards():
    nodes = [{"rank": r, "mac": "02:00:00:00:01:%02x" % r, "ip": "10.0.1.%d" % r, "port": 1} for r in range(33)]
    good = {"nodes": nodes, "jobs": [{"job": 1, "members": list(range(32)), "root": 0}], "kv": []}
    with Place() as p:
        succeed(*Run(p, good).args())
    good["jobs"][0]["members"].append(32)
    refused(["config.json", "members", "32"], tables=good, code=3)


@test
def overlapping_owners():
    bad_config(["block 7"], lambda c: c["kv"].append({**GOOD["kv"][0], "owner": 2, "replicas": []}))
    bad_config(["block 7"], lambda c: c["kv"].append(dict(GOOD["kv"][0])))
    bad_config(["replicas"], row("kv", replicas=[1]))
    bad_config(["replicas"], row("kv", replicas=[2, 2]))


@test
def capture_files():
    for name, option in (("a.pcap", "network"), ("c.pcap", "host")):
        def bad(words, data):
            refused([name, *words], code=3, **{option: data})
        records = [(10 ** 9, WORLD.query())]
        for link in (0, 101, 113, 147, 228, 276):
            bad(["link type", "Ethernet"], pcap.write(records, link=link))
        whole = pcap.write(records)
        for n in (0, 1, 4, 23, 25, 39, 40, len(whole) - 1):
            bad([], whole[:n])
        bad([], b"\x0a\x0d\x0d\x0a" + whole[4:])
        bad([], b"\0" * 100)
        bad([], whole[:4] + struct.pack("<HH", 3, 4) + whole[8:])
        # A record that says more than the file has, or than any frame is; a frame that was cut off.
        bad([], whole[:32] + struct.pack("<II", 2 ** 32 - 1, 2 ** 32 - 1) + whole[40:])
        bad([], whole[:32] + struct.pack("<II", 2 ** 31, 2 ** 31) + whole[40:])
        bad([], whole[:36] + struct.pack("<I", 9999) + whole[40:])


@test
def missing_files():
    for option in ("config", "in", "host_in"):
        with Place() as p:
            refuse([p.name("absent"), "cannot open"], *Run(p, **{option: p.name("absent")}).args(), place=p, code=3)
            refuse(str(p.path), *Run(p, **{option: str(p.path)}).args(), place=p, code=3)
    for option in ("out", "host_out"):
        with Place() as p:
            refuse(p.name("no/where.pcap"), *Run(p, **{option: p.name("no/where.pcap")}).args(), place=p)


@test
def full_disk():
    """An output that cannot be written is an error, and what there is of the other one is not left behind."""
    reliable = [(10 ** 9 + i, WORLD.query(flags=f.RELIABLE, heads=1, dim=4000)) for i in range(60)]
    for option, count in (("out", 60), ("host_out", 60), ("out", 1), ("host_out", 1), ("out", 0), ("host_out", 0)):
        with Place() as p:
            r = Run(p, network=pcap.write(reliable[:count]), host=pcap.write([]), **{option: "/dev/full"})
            before = p.listing()
            code, out, err = run(*r.args())
            assert code not in (0,) and code < 128 and out == b"", (code, out, err)
            assert err.startswith(b"millrace: ") and err.count(b"\n") == 1 and b"/dev/full" in err, err
            assert p.listing() == before, p.listing()


@test
def no_half_written_output():
    """A refusal leaves older outputs as they were."""
    for what in ({"network": FRAMES[:-1]}, {"host": FRAMES[:-1]}, {"tables": b"{"}, {"rank": "9"}):
        with Place() as p:
            p.file("b.pcap", b"older")
            p.file("d.pcap", b"older")
            refuse("millrace: ", *Run(p, **what).args(), place=p)
            assert open(p.name("b.pcap"), "rb").read() == b"older" == open(p.name("d.pcap"), "rb").read()


@test
def options():
    refused(["--rank"], rank="-1", code=2)
    refused(["--rank"], rank="1x", code=2)
    refused(["--rank"], rank="", code=2)
    refused(["--rank"], rank="99999999999999999999", code=2)
    for missing in ("rank", "config", "in", "out"):
        with Place() as p:
            refuse("--" + missing, *Run(p, **{missing: None}).args(), code=2)
    for lone in ("host_in", "host_out"):
        with Place() as p:
            r = Run(p, **{lone: None})
            code, out, err = run(*r.args())
            assert code == 0 or err.count(b"\n") == 1 and b"--host" in err, (code, err)
    with Place() as p:
        refuse("--colour", *Run(p).args(), "--colour", "red", code=2, place=p)
        refuse("twice", *Run(p).args(), "--rank", "1", code=2, place=p)
        refuse("unexpected", *Run(p).args(), "more", code=2, place=p)
        for device in ("", "nope", "sim:nope", "sim:nic?frames=7", "golden?x=1", "golden:"):
            refuse("millrace: ", *Run(p, device=device).args(), place=p)
        refuse("millrace: ", "nic", "replya", place=p, code=2)
        refuse("millrace: ", "nic", place=p, code=2)
        refuse("--host-out", *Run(p, out=p.name("d.pcap")).args(), place=p, code=2)


main(TESTS)
