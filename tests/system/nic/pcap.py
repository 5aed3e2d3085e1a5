"""Capture files by hand: the classic pcap format, four flavours."""
import struct

ETHERNET = 1


def write(records, order="<", nano=False, link=ETHERNET):
    """The file of (time in nanoseconds, frame) records."""
    unit = 1 if nano else 1000
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 262144, link)]
    for time, frame in records:
        out.append(struct.pack(order + "IIII", time // 10**9, time % 10**9 // unit, len(frame), len(frame)))
        out.append(frame)
    return b"".join(out)


def read(data):
    """[(time in nanoseconds, frame)] of a whole, well-formed Ethernet file; anything else is an error."""
    for order in "<>":
        magic = struct.unpack_from(order + "I", data)[0]
        if magic in (0xA1B2C3D4, 0xA1B23C4D):
            break
    else:
        raise ValueError("not a pcap file")
    unit = 1 if magic == 0xA1B23C4D else 1000
    major, minor, _, _, _, link = struct.unpack_from(order + "HHiIII", data, 4)
    if (major, minor, link) != (2, 4, ETHERNET):
        raise ValueError("version %d.%d, link type %d" % (major, minor, link))
    at, records = 24, []
    while at < len(data):
        seconds, fraction, captured, original = struct.unpack_from(order + "IIII", data, at)
        if fraction * unit >= 10**9 or captured != original or at + 16 + captured > len(data):
            raise ValueError("bad record at byte %d" % at)
        records.append((seconds * 10**9 + fraction * unit, data[at + 16:at + 16 + captured]))
        at += 16 + captured
    return records
