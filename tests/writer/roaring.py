"""Deletion vectors: 64-bit roaring bitmaps in a Puffin file."""

from __future__ import annotations

import json
import struct
import zlib

MAGIC = b"\xd1\xd3\x39\x64"


def _bitmap32(values):
    """A 32-bit roaring bitmap of array and bitmap containers, without runs."""
    containers = {}
    for value in values:
        containers.setdefault(value >> 16, []).append(value & 0xFFFF)
    header = struct.pack("<II", 12346, len(containers))
    keys, bodies = b"", []
    for key, low in sorted(containers.items()):
        keys += struct.pack("<HH", key, len(low) - 1)
        if len(low) <= 4096:
            bodies.append(struct.pack(f"<{len(low)}H", *sorted(low)))
        else:
            bits = bytearray(8192)
            for value in low:
                bits[value >> 3] |= 1 << (value & 7)
            bodies.append(bytes(bits))
    position = len(header) + len(keys) + 4 * len(containers)
    offsets = b""
    for body in bodies:
        offsets += struct.pack("<I", position)
        position += len(body)
    return header + keys + offsets + b"".join(bodies)


def deletion_vector(positions):
    """The blob ``deletion-vector-v1`` of row positions."""
    high = {}
    for position in sorted(set(positions)):
        high.setdefault(position >> 32, []).append(position & 0xFFFFFFFF)
    vector = struct.pack("<Q", len(high))
    for key, low in sorted(high.items()):
        vector += struct.pack("<I", key) + _bitmap32(low)
    body = MAGIC + vector
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


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
