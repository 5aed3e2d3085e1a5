"""One compute-NIC as its specification says: a frame in, its fate, the frames out.

Replay mode: no timers, no far port. A Nic is fed with network() and host(), and lists what it sends
in `sent` and what it delivers in `delivered`, each entry the exact bytes or, for a MERGED, a Result.
"""
import collections
import struct

from . import arith, frame as f

SLOTS = 64
PARKED = 512
COMPLETED = 4096
BUFFER = 9216       # a longer frame is only looked at: where its bytes are needed, it does not fit
WINDOW = 63

FATES = ("runt", "not_ip", "bad_ip_checksum", "fragment", "not_mine", "passed", "truncated", "bad_udp_checksum",
         "bad_version", "bad_opcode", "bad_field", "too_long", "no_entry", "stale_epoch", "out_of_range", "late",
         "duplicate", "mismatch", "no_slot", "overrun", "contributed", "kv_written", "kv_served", "kv_forwarded",
         "host_delivered", "control")
WORK = ("rx_frames", "merged", "reduced", "released", "acks", "nacks", "retransmissions", "tx_frames", "rx_bytes",
        "tx_bytes")
REASON = {"stale_epoch": f.STALE_EPOCH, "no_entry": f.NO_ENTRY, "no_slot": f.NO_SLOT, "mismatch": f.MISMATCH,
          "out_of_range": f.OUT_OF_RANGE}
KV = (f.KV_WRITE, f.KV_READ, f.KV_DATA)
CONTRIBUTIONS = {f.PARTIAL: (f.MERGED, "merged"), f.REDUCE: (f.RESULT, "reduced"), f.BARRIER: (f.BARRIER, "released")}

Job = collections.namedtuple("Job", "members root")


def serial(a, b):
    """a - b of two 32-bit serial numbers."""
    return (a - b + 2 ** 31) % 2 ** 32 - 2 ** 31


class Entry:
    """A directory entry and what this node holds of it."""

    def __init__(self, owner, replicas, epoch, size):
        self.owner, self.epoch, self.size = owner, epoch, size
        self.named = sorted({owner, *replicas})
        self.data = bytearray(size)
        self.written = set()


class Slot:
    def __init__(self, first):
        self.first = first          # the header that the rest must agree with
        self.parts = {}             # rank -> (header, payload)
        self.waiting = None         # ranks that owe an ACK for the result; None while it is open
        self.result = 0             # the opcode that they acknowledge

    def agrees(self, h):
        a = self.first
        return ((a.opcode, a.heads, a.dim, a.dtype, a.shards) == (h.opcode, h.heads, h.dim, h.dtype, h.shards)
                and (h.opcode != f.REDUCE or a.operator == h.operator))


class Result:
    """A frame whose payload is judged by the bound; every other byte but its checksum is known."""

    def __init__(self, source, destination, header, merge):
        self.source, self.destination, self.header, self.merge = source, destination, header, merge

    def judge(self, got):
        size = f.statistics(f.MERGED, self.header.heads) + self.header.heads * self.header.dim * f.SIZE[self.header.dtype]
        want = f.emitted(self.source, self.destination, f.pack(self.header) + bytes(size))
        if len(got) != len(want):
            return "%d bytes instead of %d" % (len(got), len(want))
        if got[:40] != want[:40] or got[42:74] != want[42:74]:
            return "header\n  got  %s\n  want %s" % (got[:74].hex(), want[:74].hex())
        if got[74 + size:] != want[74 + size:]:
            return "padding %s" % got[74 + size:].hex()
        checksum = int.from_bytes(got[40:42], "big")
        payload = got[74:74 + size]
        if not checksum or f.emitted(self.source, self.destination, got[42:74 + size])[40:42] != got[40:42]:
            return "UDP checksum %04x" % checksum
        return self.merge.judge(payload)


class Nic:
    def __init__(self, rank, nodes, jobs, kv=()):
        """nodes: {rank: frame.Node}; jobs: {job: Job}; kv: {(job, layer, block): (owner, replicas, epoch, bytes)}"""
        self.rank, self.nodes = rank, nodes
        self.jobs = {job: Job(sorted(row.members), row.root) for job, row in jobs.items()}
        self.own = nodes[rank]
        self.entries = {key: Entry(*value) for key, value in dict(kv).items()}
        self.counters = dict.fromkeys(FATES + WORK, 0)
        self.slots = {}
        self.completed = collections.OrderedDict()
        self.newest = {}
        self.sent, self.delivered = [], []

    # ---- frames in --------------------------------------------------------------------------------

    def network(self, data):
        """Takes a frame from the network; its fate."""
        p = f.parse(data, self.own)
        fate = p.fate or self._take(p.header, p.payload, data, False)
        self.counters["rx_frames"] += 1
        self.counters["rx_bytes"] += len(data)
        self.counters[fate] += 1
        return fate

    def host(self, data):
        """Takes a frame from the own host; its fate, "sent" when it leaves as it is."""
        p = f.parse(data, self.own)
        if p.fate in ("not_ip", "not_mine") or (p.fate in ("bad_ip_checksum", "fragment")
                                                        and data[:6] != self.own.mac):
            if len(data) > BUFFER:
                return "overrun"
            self._send(data)
            return "sent"
        return p.fate or self._take(p.header, p.payload, data, True)

    # ---- frames out -------------------------------------------------------------------------------

    def _send(self, data):
        self.sent.append(data)
        self.counters["tx_frames"] += 1
        self.counters["tx_bytes"] += len(data)

    def _deliver(self, data):
        self.delivered.append(data)

    def _make(self, rank, h, payload=b""):
        """A frame of the NIC's own to a rank; whether there is such a node."""
        if rank not in self.nodes:
            return False
        data = f.emitted(self.own, self.nodes[rank], f.pack(h) + payload)
        if rank == self.rank:
            self._deliver(data)
        else:
            self._send(data)
        return True

    def _answer(self, opcode, h, payload=b""):
        answer = h._replace(opcode=opcode, dtype=h.opcode, flags=0, shard=self.rank, heads=0, dim=0)
        return self._make(h.shard, answer, payload)

    def _ack(self, h):
        if h.flags & f.RELIABLE and self._answer(f.ACK, h):
            self.counters["acks"] += 1

    def _nack(self, fate, h, epoch=0):
        if self._answer(f.NACK, h, struct.pack(">II", REASON[fate], epoch)):
            self.counters["nacks"] += 1
        return fate

    # ---- what is done with a good frame -----------------------------------------------------------

    def _take(self, h, payload, data, from_host):
        job = self.jobs.get(h.job)
        if job is None:
            return "no_entry"
        if h.shard not in job.members:
            return self._nack("no_entry", h) if h.opcode in KV else "no_entry"
        if h.opcode in KV:
            return self._kv(h, payload, data, from_host)
        if h.opcode in (f.ACK, f.NACK):
            if h.opcode == f.ACK:
                self._acknowledged(h)
            return "control"
        if h.opcode in CONTRIBUTIONS and not (h.opcode == f.BARRIER and h.flags & f.LAST):
            return self._contribution(h, payload, data)
        if len(data) > BUFFER:
            return "overrun"
        if h.opcode == f.QUERY and from_host:
            for rank in job.members:
                if rank != self.rank:
                    self._make(rank, h, payload)
            if self.rank not in job.members:
                return "host_delivered"
        self._deliver(data)
        self._ack(h)
        return "host_delivered"

    # ---- KV ---------------------------------------------------------------------------------------

    def _kv(self, h, payload, data, from_host):
        entry = self.entries.get((h.job, h.layer, h.block))
        if entry is None:
            return self._nack("no_entry", h)
        if h.epoch < entry.epoch:
            return self._nack("stale_epoch", h, entry.epoch)
        size = struct.unpack(">I", payload)[0] if h.opcode == f.KV_READ else len(payload)
        if h.offset % f.CHUNK or not size or h.offset + size > entry.size:
            return self._nack("out_of_range", h, entry.epoch)
        if h.opcode == f.KV_READ:
            return self._read(h, payload, entry, size, len(data) > BUFFER)
        if h.opcode == f.KV_WRITE and self.rank not in entry.named and h.flags & f.FORWARDED:
            return self._nack("no_entry", h, entry.epoch)
        if len(data) > BUFFER:
            return "overrun"
        if h.opcode == f.KV_WRITE:
            return self._write(h, payload, entry, from_host)
        self._deliver(data)
        return "host_delivered"

    def _write(self, h, payload, entry, from_host):
        if self.rank in entry.named:
            if from_host:
                for rank in entry.named:
                    if rank != self.rank:
                        self._make(rank, h, payload)
            end = h.offset + len(payload)
            entry.data[h.offset:end] = payload
            entry.written.add(h.offset // f.CHUNK)
            self._ack(h)
            return "kv_written"
        for rank in entry.named:
            self._make(rank, h if from_host else h._replace(flags=h.flags | f.FORWARDED), payload)
        return "kv_forwarded"

    def _read(self, h, payload, entry, size, beyond):
        end = h.offset + size
        held = self.rank in entry.named and all(
            c in entry.written for c in range(h.offset // f.CHUNK, (end + f.CHUNK - 1) // f.CHUNK))
        if not held:
            if h.flags & f.FORWARDED or self.rank == entry.owner:
                return self._nack("no_entry", h, entry.epoch)
            if beyond:
                return "overrun"
            self._make(entry.owner, h._replace(flags=h.flags | f.FORWARDED), payload)
            return "kv_forwarded"
        for at in range(h.offset, end, f.CHUNK):
            upto = min(at + f.CHUNK, end)
            self._make(h.shard, h._replace(opcode=f.KV_DATA, flags=int(upto == end), shard=self.rank,
                                           epoch=entry.epoch, offset=at), bytes(entry.data[at:upto]))
        return "kv_served"

    # ---- slots ------------------------------------------------------------------------------------

    def _late(self, h):
        slot = self.slots.get(h.key)
        if slot and slot.waiting is not None or h.key in self.completed:
            return True
        newest = self.newest.get(h.job)
        return newest is not None and serial(h.request, newest - WINDOW) < 0

    def _parked(self, slot):
        """Contributions that wait for one of a lower rank."""
        if slot.first.opcode == f.BARRIER or slot.waiting is not None:
            return 0
        count = len(slot.parts)
        for rank in self.jobs[slot.first.job].members:
            if rank not in slot.parts:
                break
            count -= 1
        return count

    def _contribution(self, h, payload, data):
        if self._late(h):
            self._ack(h)
            return "late"
        slot = self.slots.get(h.key)
        if slot:
            if h.shard in slot.parts:
                self._ack(h)
                return "duplicate"
            if not slot.agrees(h):
                return self._nack("mismatch", h)
        elif len(self.slots) == SLOTS:
            return self._nack("no_slot", h)
        parts = slot.parts if slot else {}
        # The lowest rank that is missing, or the one that completes the slot, is not parked.
        members = self.jobs[h.job].members
        straight = h.opcode == f.BARRIER or len(parts) + 1 == h.shards or \
            h.shard == next(rank for rank in members if rank not in parts)
        if not straight and sum(map(self._parked, self.slots.values())) >= PARKED:
            return self._nack("no_slot", h)
        if len(data) > BUFFER and h.opcode != f.BARRIER:
            return "overrun"
        if not slot:
            slot = self.slots[h.key] = Slot(h)
            newest = self.newest.get(h.job)
            if newest is None or serial(h.request, newest) > 0:
                self.newest[h.job] = h.request
        slot.parts[h.shard] = h, payload
        self._ack(h)
        if len(slot.parts) == h.shards:
            self._complete(slot)
        return "contributed"

    def _complete(self, slot):
        parts = [slot.parts[rank] for rank in sorted(slot.parts)]
        lowest, job = parts[0][0], self.jobs[slot.first.job]
        slot.result, counter = CONTRIBUTIONS[lowest.opcode]
        flags = f.LAST
        for h, _ in parts:
            flags |= h.flags & f.RELIABLE
        if lowest.opcode == f.REDUCE:
            flags |= lowest.flags & 0x30
        header = lowest._replace(opcode=slot.result, flags=flags, shard=self.rank, offset=0)
        everybody = lowest.opcode == f.BARRIER or any(h.flags & f.TO_ALL for h, _ in parts)
        ranks = job.members if everybody else [job.root]
        if lowest.opcode == f.PARTIAL:
            merge = arith.Merge(lowest, parts)
            for rank in ranks:
                self._result(rank, header, merge)
        else:
            payload = b""
            if lowest.opcode == f.REDUCE:
                payload = arith.reduce_(lowest.operator, lowest.dtype, [p for _, p in parts])
            for rank in ranks:
                self._make(rank, header, payload)
        self.counters[counter] += 1
        self.completed[lowest.key] = True
        if len(self.completed) > COMPLETED:
            self.completed.popitem(last=False)
        slot.waiting = {rank for rank in ranks if rank != self.rank} if flags & f.RELIABLE else set()
        slot.parts = {}
        if not slot.waiting:
            del self.slots[lowest.key]

    def _result(self, rank, header, merge):
        size = f.statistics(f.MERGED, header.heads) + header.heads * header.dim * f.SIZE[header.dtype]
        result = Result(self.own, self.nodes[rank], header, merge)
        if rank == self.rank:
            self.delivered.append(result)
        else:
            self.sent.append(result)
            self.counters["tx_frames"] += 1
            self.counters["tx_bytes"] += max(60, 42 + f.HEADER.size + size)

    def _acknowledged(self, h):
        slot = self.slots.get(h.key)
        if slot and slot.waiting is not None and h.dtype == slot.result:
            slot.waiting.discard(h.shard)
            if not slot.waiting:
                del self.slots[h.key]
