#!/usr/bin/env python3
"""The NIC's frames as tools that are not ours see them: tshark with the generated dissector, scapy.

Each test skips where its tool is not installed.
"""
import importlib.util
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import ROOT, Place, Skip, main, succeed_json  # noqa: E402
from nic import frame as f, model, pcap, replay, traffic  # noqa: E402

rng = files.seeded()
DISSECTOR = str(ROOT / "tools/wireshark/millrace.lua")
FLAGS = ("last", "retransmission", "natural", "reliable", "operator", "everyone", "forwarded")
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def tshark(place, data, names, *options):
    """The rows of a capture: the fields of each frame as text, where it has them."""
    if not shutil.which("tshark"):
        raise Skip("tshark is not installed")
    command = ["tshark", "-r", place.file("x.pcap", data), "-X", "lua_script:" + DISSECTOR, "-T", "fields", *options,
               "-E", "separator=|", "-E", "occurrence=a", *[x for n in names for x in ("-e", n)]]
    if os.geteuid() == 0:
        # Wireshark runs no scripts for root.
        if not shutil.which("setpriv"):
            raise Skip("tshark runs no dissectors for root, and setpriv is not installed")
        os.chmod(place.path, 0o755)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    p = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, cwd="/",
                       env={**os.environ, "HOME": "/nonexistent", "LC_ALL": "C"})
    assert p.returncode == 0, p.stderr.decode()
    assert b"Lua" not in p.stderr, p.stderr.decode()
    return [line.split("|") for line in p.stdout.decode().splitlines()]


def output(frames, world):
    t = replay.Traffic()
    t.frames = frames
    with Place() as p:
        return replay.command(p, succeed_json, "golden", world.own,
                              replay.config(world.nodes, world.jobs, world.kv), *t.files())


def made(count, least):
    """Frames that the NIC made, not those that left as the host wrote them, in a world of random addresses."""
    world = traffic.World(rng, "random")
    frames = traffic.mixed(rng, world, count)
    given = {data for data, host in frames if host}
    out = [data for data in output(frames, world).sent if data not in given]
    assert len(out) > least
    return out


@test
def tshark_reads_every_field():
    world = traffic.World(rng)
    frames = [x for x in traffic.mixed(rng, world, 400, spoilt=0)]
    outcome = output(frames, world)
    everything = [x[0] for x in frames] + outcome.sent + outcome.delivered
    numbers = [n for n in f.FIELDS]
    names = ["millrace." + n for n in numbers] + ["millrace.flags." + n for n in FLAGS] + [
        "millrace.answers", "millrace.length", "millrace.reason", "millrace.current_epoch", "_ws.malformed"]
    with Place() as p:
        rows = tshark(p, pcap.write([(i, x) for i, x in enumerate(everything)]), names)
    assert len(rows) == len(everything)
    seen = dict.fromkeys(range(1, 12), 0)
    for data, row in zip(everything, rows):
        at = 18 if data[12:14] == b"\x81\0" else 14
        at += (data[at] & 15) * 4
        length = int.from_bytes(data[at + 4:at + 6], "big") - 8
        message = data[at + 8:at + 8 + length]
        h = f.Header(*f.HEADER.unpack_from(message))
        got = dict(zip(names, row))
        for name, value in h._asdict().items():
            assert int(got["millrace." + name], 0) == value, (name, value, got)
        bits = (h.flags & 1, h.flags >> 1 & 1, h.flags >> 2 & 1, h.flags >> 3 & 1, h.operator, h.flags >> 6 & 1, h.flags >> 7)
        for name, value in zip(FLAGS, bits):
            text = got["millrace.flags." + name]
            assert {"True": 1, "False": 0}.get(text, text) == value or int(text, 0) == value, (name, value, text)
        assert not got["_ws.malformed"], got
        if h.opcode in (f.ACK, f.NACK):
            assert int(got["millrace.answers"]) == h.dtype
        if h.opcode == f.KV_READ:
            assert int(got["millrace.length"]) == int.from_bytes(message[32:36], "big")
        if h.opcode == f.NACK:
            assert int(got["millrace.reason"]) == int.from_bytes(message[32:36], "big")
            assert int(got["millrace.current_epoch"]) == int.from_bytes(message[36:40], "big")
        seen[h.opcode] += 1
    assert all(seen.values()), seen


@test
def tshark_finds_checksums_good():
    frames = made(600, 100)
    with Place() as p:
        rows = tshark(p, pcap.write([(i, x) for i, x in enumerate(frames)]),
                      ["ip.checksum.status", "udp.checksum.status", "ip.flags.df", "ip.version"],
                      "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
    assert len(rows) == len(frames)
    for data, row in zip(frames, rows):
        assert row[:2] == ["1", "1"] and row[2] in ("1", "True") and row[3] == "4", (row, data.hex())


def scapy():
    if not importlib.util.find_spec("scapy"):
        raise Skip("scapy is not installed")
    import scapy.all as all_
    return all_


@test
def scapy_builds_frames():
    """Frames and a capture file that scapy made, with a VLAN tag, with options, a fragment."""
    s = scapy()
    world = traffic.World(rng)
    own = world.nodes[world.own]
    packets, fates = [], []
    for i in range(60):
        h = f.header(f.QUERY, job=1, shard=i % 4, shards=4, request=i, dtype=1, heads=1, dim=1 + i)
        sender = world.nodes[i % 4]
        link = s.Ether(src=sender.mac.hex(":"), dst=own.mac.hex(":"))
        if i % 3 == 1:
            link /= s.Dot1Q(vlan=i)
        if i % 7 == 6:
            link /= s.Dot1Q(vlan=i) / s.Dot1Q(vlan=i)
        ip = s.IP(src=".".join(map(str, sender.ip)), dst=".".join(map(str, own.ip)), flags="MF" if i % 10 == 9 else "DF",
                  options=[s.IPOption_NOP()] * (i % 5 * 4))
        udp = s.UDP(sport=sender.port, dport=own.port if i % 11 else 53)
        packets.append(link / ip / udp / s.Raw(f.pack(h) + rng.randbytes(2 * h.dim)))
        fates.append("not_ip" if i % 7 == 6 else "fragment" if i % 10 == 9 else "host_delivered" if i % 11 else "not_mine")
    with Place() as p:
        path = p.name("scapy.pcap")
        s.wrpcap(path, packets)
        with open(path, "rb") as file:
            records = pcap.read(file.read())
        nic = model.Nic(world.own, world.nodes, world.jobs, world.kv)
        assert [nic.network(data) for _, data in records] == fates
        a = p.file("config.json", replay.config(world.nodes, world.jobs, world.kv))
        empty = p.file("c.pcap", pcap.write([]))
        report = succeed_json("nic", "replay", "--rank", "1", "--config", a, "--in", path, "--out", p.name("b.pcap"),
                              "--host-in", empty, "--host-out", p.name("d.pcap"), "--device", "golden")
        for name in model.FATES:
            assert report["counters"][name] == fates.count(name), name
        delivered = [bytes(x) for x in s.rdpcap(p.name("d.pcap"))]
        assert delivered == nic.delivered


@test
def scapy_finds_checksums_good():
    s = scapy()
    for data in made(400, 50):
        packet = s.Ether(data)
        del packet[s.IP].chksum
        del packet[s.UDP].chksum
        assert bytes(packet) == data, data.hex()


main(TESTS)
