"""The frame format: Ethernet II, at most one 802.1Q tag, IPv4, UDP and the 32-byte header."""
import collections
import struct

PORT = 19794
KV_WRITE, KV_READ, KV_DATA, QUERY, PARTIAL, MERGED, REDUCE, RESULT, BARRIER, ACK, NACK = range(1, 12)
OPCODES = ("", "KV_WRITE", "KV_READ", "KV_DATA", "QUERY", "PARTIAL", "MERGED", "REDUCE", "RESULT", "BARRIER",
           "ACK", "NACK")
BF16, FP16, FP32, INT32 = range(1, 5)
SIZE = {BF16: 2, FP16: 2, FP32: 4, INT32: 4}
LAST, RETRANSMISSION, NATURAL, RELIABLE = 1, 2, 4, 8
SUM, MAX, MIN = 0, 1, 2
TO_ALL, FORWARDED = 0x40, 0x80
STALE_EPOCH, NO_ENTRY, NO_SLOT, MISMATCH, OUT_OF_RANGE = range(1, 6)
LARGEST = 9000      # bytes of UDP payload
CHUNK = 4096        # bytes of KV a frame

HEADER = struct.Struct(">BBBBHBBIHHHHIII")
Node = collections.namedtuple("Node", "rank mac ip port")

FIELDS = ("version", "opcode", "dtype", "flags", "job", "shard", "shards", "request", "layer", "head0", "heads", "dim",
          "epoch", "block", "offset")


class Header(collections.namedtuple("Header", FIELDS)):
    __slots__ = ()

    @property
    def operator(self):
        return self.flags >> 4 & 3

    @property
    def key(self):
        return self.job, self.request, self.layer, self.head0, self.block


def header(opcode, **fields):
    return Header(*{**dict.fromkeys(FIELDS, 0), "version": 1, "opcode": opcode, "shards": 1, **fields}.values())


def pack(h):
    return HEADER.pack(*h)


def statistics(opcode, heads):
    """Bytes of the statistics that lead a payload."""
    per_head = {PARTIAL: 8, MERGED: 4}.get(opcode, 0)
    return (heads * per_head + 63) // 64 * 64


def mac(text):
    return bytes(int(part, 16) for part in text.split(":"))


def ip(text):
    return bytes(int(part) for part in text.split("."))


def node(rank):
    """The row that the tests give a rank unless they want another one."""
    return Node(rank, bytes((2, 0, 0, 0, 0, rank)), bytes((10, 0, 0, rank + 1)), PORT)


def ones_sum(data):
    """The unfolded sum of the 16-bit words, an odd byte padded with zero."""
    if len(data) & 1:
        data += b"\0"
    return sum(struct.unpack(">%dH" % (len(data) // 2), data))


def fold(total):
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def udp_sum(source, destination, datagram):
    """Folded sum over pseudo header and datagram; 0xFFFF when a checksum in it is right."""
    return fold(ones_sum(source + destination) + 17 + len(datagram) + ones_sum(datagram))


def ethernet(source, destination, payload, *, port=None, tag=None, options=b"", proto=17, total=None, udp_length=None,
             udp_checksum=None, ip_checksum=None, fragment=0x4000, version_ihl=None, tos=0, ident=0, ttl=64,
             slack=b"", pad=b"\0", smallest=60, ethertype=0x0800):
    """A frame between two nodes. What is wrong with it, or unusual, comes through the options."""
    length = 8 + len(payload) if udp_length is None else udp_length
    udp = struct.pack(">HHHH", source.port, destination.port if port is None else port, length & 0xFFFF, 0)
    if udp_checksum is None:
        udp_checksum = 0xFFFF - udp_sum(source.ip, destination.ip, udp + payload) or 0xFFFF
    udp = udp[:6] + struct.pack(">H", udp_checksum) + payload + slack
    if version_ihl is None:
        version_ihl = 0x40 | 5 + len(options) // 4
    if total is None:
        total = 20 + len(options) + len(udp)
    head = struct.pack(">BBHHHBBH", version_ihl, tos, total & 0xFFFF, ident, fragment, ttl, proto, 0)
    head += source.ip + destination.ip + options
    if ip_checksum is None:
        ip_checksum = 0xFFFF - fold(ones_sum(head))
    head = head[:10] + struct.pack(">H", ip_checksum) + head[12:]
    link = destination.mac + source.mac
    if tag is not None:
        link += struct.pack(">HH", 0x8100, tag)
    frame = link + struct.pack(">H", ethertype) + head + udp
    return frame + (pad * smallest)[:max(0, smallest - len(frame))]


def emitted(source, destination, payload):
    """A frame as the NIC makes it."""
    return ethernet(source, destination, payload)


class Parsed:
    """Where things lie in a frame; the fate, when the frame does not come through the checks."""
    __slots__ = ("fate", "header", "payload", "message", "ours")


def _destined(frame, at, own):
    """Whether MAC, protocol, address and port (IHL at byte `at`) are those of the own row."""
    udp = at + (frame[at] & 15) * 4
    return (frame[:6] == own.mac and frame[at + 16:at + 20] == own.ip and frame[at + 9] == 17
            and len(frame) >= udp + 8 and int.from_bytes(frame[udp + 2:udp + 4], "big") == own.port)


def parse(frame, own):
    """The fate of a bad frame, or header and payload of one that is good as far as it itself can tell."""
    p = Parsed()
    p.ours = False      # known to be addressed to the own row
    p.header = None
    p.fate = _parse(frame, own, p)
    return p


def _parse(frame, own, p):
    size = len(frame)
    if size < 60:
        return "runt"
    at = 14
    ethertype = frame[12:14]
    if ethertype == b"\x81\x00":
        at, ethertype = 18, frame[16:18]
    if ethertype != b"\x08\x00":
        return "not_ip"
    ihl = (frame[at] & 15) * 4
    if frame[at] >> 4 != 4 or ihl < 20 or at + ihl > size or fold(ones_sum(frame[at:at + ihl])) != 0xFFFF:
        return "bad_ip_checksum"
    total, = struct.unpack_from(">H", frame, at + 2)
    if struct.unpack_from(">H", frame, at + 6)[0] & 0x3FFF:
        return "fragment"
    if not _destined(frame, at, own):
        return "not_mine"
    p.ours = True
    udp = at + ihl
    length, checksum = struct.unpack_from(">HH", frame, udp + 4)
    if at + total > size or total < ihl + 8 or length < 8 or ihl + length > total:
        return "truncated"
    if checksum and udp_sum(frame[at + 12:at + 16], frame[at + 16:at + 20], frame[udp:udp + length]) != 0xFFFF:
        return "bad_udp_checksum"
    if length < 8 + HEADER.size:
        return "truncated"
    p.message = frame[udp + 8:udp + length]
    p.header = Header(*HEADER.unpack_from(p.message))
    p.payload = p.message[HEADER.size:]
    return checked(p.header, len(p.message))


def checked(h, size):
    """The fate that the header alone decides, None when it is in order."""
    if h.version != 1:
        return "bad_version"
    if not KV_WRITE <= h.opcode <= NACK:
        return "bad_opcode"
    if h.opcode in (QUERY, PARTIAL, MERGED):
        legal = BF16 <= h.dtype <= FP32
    elif h.opcode in (REDUCE, RESULT, KV_WRITE, KV_READ, KV_DATA):
        legal = BF16 <= h.dtype <= INT32
    else:
        legal = True
    if h.opcode in (QUERY, PARTIAL, MERGED, REDUCE, RESULT):
        legal = legal and h.heads and h.dim
    if not legal or not 1 <= h.shards <= 32 or h.opcode == REDUCE and h.operator == 3:
        return "bad_field"
    if size > LARGEST:
        return "too_long"
    if h.opcode in (REDUCE, RESULT) and h.heads != 1:
        return "truncated"
    size -= HEADER.size
    if h.opcode in (KV_WRITE, KV_DATA):
        return None if 1 <= size <= CHUNK else "truncated"
    if h.opcode == KV_READ:
        want = 4
    elif h.opcode in (QUERY, PARTIAL, MERGED, REDUCE, RESULT):
        want = statistics(h.opcode, h.heads) + h.heads * h.dim * SIZE[h.dtype]
    else:
        want = 8 if h.opcode == NACK else 0
    return None if size == want else "truncated"
