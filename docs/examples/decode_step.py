#!/usr/bin/env python3
"""One decode step over three compute-NICs, frame by frame, through `millrace nic replay`.

Usage: docs/examples/decode_step.py [--millrace build/millrace] [--device golden|sim:nic] [--keep DIR]

Each node's NIC is replayed by itself; what one sends is what the next receives. --keep leaves the
captures in DIR; open them in Wireshark with tools/wireshark/millrace.lua.
"""
import argparse
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

OPCODES = [None, "KV_WRITE", "KV_READ", "KV_DATA", "QUERY", "PARTIAL", "MERGED", "REDUCE", "RESULT",
           "BARRIER", "ACK", "NACK"]
HEADS, DIM, NODES = 4, 64, 3
RELIABLE = 0x08


def mac(rank):
    return bytes([2, 0, 0, 0, 0, rank])


def ip(rank):
    return bytes([10, 0, 0, 1 + rank])


def ones_sum(data):
    total = sum(struct.unpack(">%dH" % ((len(data) + 1) // 2), data + b"\0" * (len(data) & 1)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(source, target, opcode, flags, payload):
    head = struct.pack(">BBBBHBBIHHHHIII", 1, OPCODES.index(opcode), 3, flags, 1, source, NODES, 1,
                       0, 0, HEADS, DIM, 1, 0, 0)
    body = head + payload
    udp = struct.pack(">HHHH", 19794, 19794, 8 + len(body), 0)
    pseudo = ip(source) + ip(target) + struct.pack(">HH", 17, len(udp) + len(body))
    udp = udp[:6] + struct.pack(">H", ones_sum(pseudo + udp + body) or 0xFFFF)
    start = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(body), 0, 0x4000, 64, 17, 0) + ip(source) + ip(target)
    start = start[:10] + struct.pack(">H", ones_sum(start)) + start[12:]
    return mac(target) + mac(source) + b"\x08\x00" + start + udp + body


def write_pcap(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for at, data in enumerate(frames):
            file.write(struct.pack("<IIII", 0, at, len(data), len(data)) + data)


def read_pcap(path):
    with open(path, "rb") as file:
        data = file.read()
    frames, at = [], 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def describe(data):
    opcode, flags, shard, shards = data[43], data[45], data[48], data[49]
    text = "%-8s shard %d of %d, %5d bytes" % (OPCODES[opcode], shard, shards, len(data))
    return text + (", to be acknowledged" if flags & RELIABLE else "")


class Cluster:
    def __init__(self, millrace, device, folder):
        self.millrace, self.device, self.folder, self.step = millrace, device, folder, 0
        config = {"nodes": [{"rank": r, "mac": mac(r).hex(":"), "ip": ".".join(map(str, ip(r))),
                             "port": 19794} for r in range(NODES)],
                  "jobs": [{"job": 1, "members": list(range(NODES)), "root": 0}]}
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def nic(self, rank, network, host):
        """Gives a NIC frames; prints and returns (sent, delivered)."""
        self.step += 1
        names = [self.path("%d-nic%d-%s.pcap" % (self.step, rank, what))
                 for what in ("network-in", "network-out", "host-in", "host-out")]
        write_pcap(names[0], network)
        write_pcap(names[2], host)
        for data in network:
            print("  NIC %d  <- network  %s" % (rank, describe(data)))
        for data in host:
            print("  NIC %d  <- host     %s" % (rank, describe(data)))
        command = [self.millrace, "nic", "replay", "--rank", str(rank), "--config", self.path("config.json"),
                   "--in", names[0], "--out", names[1], "--host-in", names[2], "--host-out", names[3],
                   "--device", self.device, "--json"]
        out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        sent, delivered = read_pcap(names[1]), read_pcap(names[3])
        for data in sent:
            print("  NIC %d  -> network  %s, to rank %d" % (rank, describe(data), data[5]))
        for data in delivered:
            print("  NIC %d  -> host     %s" % (rank, describe(data)))
        fates = {k: v for k, v in out["counters"].items() if v and not k.startswith(("rx_", "tx_"))}
        print("         counters: " + ", ".join("%s %d" % item for item in sorted(fates.items())) + "\n")
        return sent, delivered


def partial(seed):
    rng = random.Random(seed)
    m = [rng.uniform(-20, 20) for _ in range(HEADS)]
    d = [rng.uniform(1, 50) for _ in range(HEADS)]
    o = [rng.gauss(0, 1) for _ in range(HEADS * DIM)]
    stats = b"".join(struct.pack(">ff", a, b) for a, b in zip(m, d))
    return m, d, o, stats + b"\0" * (-len(stats) % 64) + struct.pack(">%df" % len(o), *o)


def worst_error(parts, merged):
    values = struct.unpack_from(">%df" % (HEADS * DIM), merged, 74 + 64)
    worst = 0
    for i, got in enumerate(values):
        h = i // DIM
        top = max(p[0][h] for p in parts)
        weights = [2 ** (p[0][h] - top) for p in parts]
        denominator = sum(w * p[1][h] for w, p in zip(weights, parts))
        want = sum(w * p[2][i] for w, p in zip(weights, parts)) / denominator
        size = sum(abs(w * p[2][i]) for w, p in zip(weights, parts)) / denominator
        worst = max(worst, abs(got - want) / size)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millrace", default="build/millrace")
    parser.add_argument("--device", default="golden")
    parser.add_argument("--keep", metavar="DIR")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or scratch
        os.makedirs(folder, exist_ok=True)
        cluster = Cluster(arguments.millrace, arguments.device, folder)

        print("The root's host gives its NIC the query; it goes to every member:")
        query = struct.pack(">%df" % (HEADS * DIM), *[0.0] * (HEADS * DIM))
        copies, _ = cluster.nic(0, [], [frame(0, 0, "QUERY", 0, query)])

        parts = [partial(rank) for rank in range(NODES)]
        arriving = []
        for rank in range(1, NODES):
            print("Node %d gets the query; its host attends to the keys it holds and answers:" % rank)
            copy = [data for data in copies if data[5] == rank]
            sent, _ = cluster.nic(rank, copy, [frame(rank, 0, "PARTIAL", RELIABLE, parts[rank][3])])
            arriving += sent

        print("The root's NIC merges what arrives with the part of its own host:")
        acks, delivered = cluster.nic(0, arriving, [frame(0, 0, "PARTIAL", RELIABLE, parts[0][3])])
        merged = [data for data in delivered if OPCODES[data[43]] == "MERGED"]
        for data in acks:
            print("The acknowledgement reaches node %d:" % data[5])
            cluster.nic(data[5], [data], [])
        if len(merged) != 1:
            sys.exit("decode_step.py: there should be one MERGED frame")
        error = worst_error(parts, merged[0])
        print("MERGED against the definition: worst error 2^%.1f of sum |w o| / d; 2^-16 is allowed"
              % math.log2(max(error, 2 ** -60)))
        return 0 if error < 2 ** -16 else 1


if __name__ == "__main__":
    sys.exit(main())
