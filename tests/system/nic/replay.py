"""Runs the command on frames and compares what comes back with the model."""
import json

from . import model, pcap


def config(nodes, jobs, kv=()):
    """The configuration file of the command."""
    return json.dumps({
        "nodes": [{"rank": n.rank, "mac": n.mac.hex(":"), "ip": ".".join(map(str, n.ip)), "port": n.port}
                  for n in nodes.values()],
        "jobs": [{"job": job, "members": list(row.members), "root": row.root} for job, row in jobs.items()],
        "kv": [{"job": k[0], "layer": k[1], "block": k[2], "owner": v[0], "replicas": list(v[1]), "epoch": v[2],
                "bytes": v[3]} for k, v in dict(kv).items()],
    }).encode()


class Traffic:
    """Frames with their times and origins, in the order in which they are taken."""

    def __init__(self):
        self.time = 0
        self.frames = []        # (frame, whether the host sent it)

    def network(self, *frames):
        self.frames += [(data, False) for data in frames]

    def host(self, *frames):
        self.frames += [(data, True) for data in frames]

    def files(self, order="<", nano=True, step=1000):
        """Two pcap files. Frames of a pair that come one after the other in the right order share a time."""
        records, time = ([], []), 10 ** 9
        for i, (data, host) in enumerate(self.frames):
            if not (i and host and not self.frames[i - 1][1] and i % 2):
                time += step
            records[host].append((time, data))
        return [pcap.write(r, order, nano) for r in records]


class Outcome:
    def __init__(self, sent, delivered, report):
        self.sent, self.delivered, self.report = sent, delivered, report


def command(place, succeed_json, device, rank, configuration, network, host):
    """What the command makes of two capture files."""
    path = place.file("config.json", configuration)
    a, c = place.file("a.pcap", network), place.file("c.pcap", host)
    b, d = place.name("b.pcap"), place.name("d.pcap")
    report = succeed_json("nic", "replay", "--rank", str(rank), "--config", path, "--in", a, "--out", b,
                          "--host-in", c, "--host-out", d, "--device", device, timeout=3000)
    with open(b, "rb") as sent, open(d, "rb") as delivered:
        return Outcome([r[1] for r in pcap.read(sent.read())], [r[1] for r in pcap.read(delivered.read())], report)


def expected(traffic, rank, nodes, jobs, kv=()):
    """The model after the traffic, and [(frame's number, fate)]."""
    nic = model.Nic(rank, nodes, jobs, kv)
    fates, marks = [], []
    for data, host in traffic.frames:
        fates.append(nic.host(data) if host else nic.network(data))
        marks.append((len(nic.sent), len(nic.delivered)))
    return nic, fates, marks


def _cause(marks, side, index):
    """The input frame that made the output frame of that number."""
    return next((i for i, m in enumerate(marks) if m[side] > index), None)


def differences(traffic, nic, fates, marks, outcome, limit=5):
    """What the command did otherwise than the model, in words."""
    wrong = []
    for side, (name, want, got) in enumerate((("sent", nic.sent, outcome.sent),
                                              ("delivered", nic.delivered, outcome.delivered))):
        for i, (w, g) in enumerate(zip(want, got)):
            problem = w.judge(g) if isinstance(w, model.Result) else \
                None if w == g else "\n  got  %s\n  want %s" % (_short(g), _short(w))
            if problem:
                k = _cause(marks, side, i)
                wrong.append("%s frame %d (input frame %d from the %s, %s, %s): %s" % (
                    name, i, k, "host" if traffic.frames[k][1] else "network", fates[k],
                    _short(traffic.frames[k][0]), problem))
                break
        if len(want) != len(got):
            i = min(len(want), len(got))
            k = _cause(marks, side, i) if i < len(want) else None
            wrong.append("%s: %d frames instead of %d%s" % (
                name, len(got), len(want),
                "" if k is None else " (the first missing one is of input frame %d, %s, %s)" % (
                    k, fates[k], _short(traffic.frames[k][0]))))
    counters = outcome.report["counters"]
    for name in model.FATES + model.WORK:
        if counters.get(name) != nic.counters[name]:
            wrong.append("counter %s: got %s, want %d" % (name, counters.get(name), nic.counters[name]))
    if not isinstance(outcome.report.get("cycles"), int):
        wrong.append("cycles: %r" % outcome.report.get("cycles"))
    fates_sum = sum(counters.get(name, 0) for name in model.FATES)
    if fates_sum != counters.get("rx_frames"):
        wrong.append("%d fates for %s frames" % (fates_sum, counters.get("rx_frames")))
    return wrong[:limit]


def same_bytes(one, other):
    """Whether two devices made the same frames, bit for bit."""
    for name, a, b in (("sent", one.sent, other.sent), ("delivered", one.delivered, other.delivered)):
        for i, (x, y) in enumerate(zip(a, b)):
            assert x == y, "%s frame %d\n  %s\n  %s" % (name, i, x.hex(), y.hex())
        assert len(a) == len(b), "%s: %d and %d frames" % (name, len(a), len(b))


def _short(data):
    return data.hex() if len(data) <= 120 else "%s... %d bytes" % (data[:120].hex(), len(data))
