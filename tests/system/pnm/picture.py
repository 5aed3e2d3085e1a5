"""Eight-bit grey PNG files as the command writes them."""
import math
import struct
import zlib


def predict(kind, left, above, corner):
    if kind == 4:
        p = left + above - corner
        return min((left, above, corner), key=lambda v: abs(p - v))
    return (0, left, above, (left + above) // 2)[kind]


def read_png(data):
    """(width, height, rows of bytes)"""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body), kind
        if kind == b"IHDR":
            size = struct.unpack(">2I", body[:8])
            assert body[8:] == bytes([8, 0, 0, 0, 0]), body[8:]
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    width, height = size
    raw, before, rows = zlib.decompress(packed), bytes(width), []
    assert len(raw) == height * (width + 1)
    for y in range(height):
        line = bytearray(raw[y * (width + 1):(y + 1) * (width + 1)])
        kind, row = line[0], line[1:]
        for x in range(width):
            left, corner = (row[x - 1], before[x - 1]) if x else (0, 0)
            row[x] = row[x] + predict(kind, left, before[x], corner) & 255
        before = bytes(row)
        rows.append(before)
    return width, height, rows


def columns(count):
    """Cells in a row of a grid of pictures."""
    return math.isqrt(count - 1) + 1


def scale(width, side, count):
    """Screen pixels a picture's pixel has, with one line between neighbours."""
    across = columns(count)
    each = (width - across + 1) // (across * side)
    assert each * across * side + across - 1 == width, (width, side, count)
    return each


def cell(rows, i, count, side, each):
    """Picture i of a grid, each of its pixels one uniform square."""
    top, left = ((v * (side * each + 1)) for v in divmod(i, columns(count)))
    out = []
    for y in range(side):
        for x in range(side):
            square = {rows[top + y * each + v][left + x * each + u] for v in range(each) for u in range(each)}
            assert len(square) == 1, (i, y, x, square)
            out.append(square.pop())
    return out
