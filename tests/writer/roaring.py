"""Deletion vectors: 64-bit roaring bitmaps in a Puffin file."""

from __future__ import annotations

import json
import struct
import zlib
from itertools import groupby

MAGIC = b"\xd1\xd3\x39\x64"


def _runs(values):
    found = []
    for value in values:
        if found and found[-1][1] + 1 == value:
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    return found


def bitmap(values, *, with_runs=False):
    """A 32-bit roaring bitmap in the portable format; with containers of runs where they are smaller."""
    groups = [
        (key, [v & 0xFFFF for v in group])
        for key, group in groupby(sorted(values), lambda v: v >> 16)
    ]
    bodies, flags = [], 0
    for index, (_, low) in enumerate(groups):
        if with_runs and len(_runs(low)) * 4 < min(2 * len(low), 8192):
            flags |= 1 << index
            pairs = b"".join(struct.pack("<HH", a, b - a) for a, b in _runs(low))
            bodies.append(struct.pack("<H", len(_runs(low))) + pairs)
        elif len(low) > 4096:
            bodies.append(sum(1 << v for v in low).to_bytes(8192, "little"))
        else:
            bodies.append(struct.pack(f"<{len(low)}H", *low))
    header = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in groups)
    if flags:
        start = struct.pack("<I", 12347 | (len(groups) - 1) << 16)
        start += flags.to_bytes((len(groups) + 7) // 8, "little")
    else:
        start = struct.pack("<II", 12346, len(groups))
    if not flags or len(groups) >= 4:
        at = len(start) + len(header) + 4 * len(groups)
        for body in bodies:
            header += struct.pack("<I", at)
            at += len(body)
    return start + header + b"".join(bodies)


def frame(payload):
    """The blob around a 64-bit roaring bitmap: its length, a mark and a checksum."""
    body = MAGIC + payload
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def deletion_vector(positions, *, with_runs=False):
    """The blob ``deletion-vector-v1`` of row positions."""
    groups = [
        (key, [position & 0xFFFFFFFF for position in group])
        for key, group in groupby(sorted(set(positions)), lambda position: position >> 32)
    ]
    payload = struct.pack("<Q", len(groups))
    for key, low in groups:
        payload += struct.pack("<I", key) + bitmap(low, with_runs=with_runs)
    return frame(payload)


def write_puffin(path, blobs):
    """Write (data file path, positions) blobs; returns (offset, length, cardinality) of each."""
    places, described = [], []
    with open(path, "wb") as out:
        out.write(b"PFA1")
        for data_path, positions in blobs:
            blob = deletion_vector(positions)
            places.append((out.tell(), len(blob), len(set(positions))))
            described.append(
                {
                    "type": "deletion-vector-v1",
                    "fields": [2147483645],
                    "snapshot-id": -1,
                    "sequence-number": -1,
                    "offset": out.tell(),
                    "length": len(blob),
                    "properties": {
                        "referenced-data-file": data_path,
                        "cardinality": str(len(set(positions))),
                    },
                }
            )
            out.write(blob)
        footer = json.dumps({"blobs": described, "properties": {}}).encode()
        out.write(b"PFA1" + footer + struct.pack("<i", len(footer)) + b"\0\0\0\0" + b"PFA1")
    return places
