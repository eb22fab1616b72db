"""Names as Avro allows them, which Iceberg's Parquet files and manifests use too."""

from __future__ import annotations

import re
from typing import Final

_LEGAL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_name(name: str) -> str:
    """``name`` with ``_`` before a first digit and ``_x<HEX>`` for each other illegal character.

    >>> avro_name("a.b"), avro_name("9x"), avro_name("é"), avro_name("😀"), avro_name("plain")
    ('a_x2Eb', '_9x', '_xE9', '_xD83D_xDE00', 'plain')

    Source: Java's AvroSchemaUtil.sanitize, which looks at UTF-16 units.
    """
    if _LEGAL.fullmatch(name):
        return name
    data = name.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    return "".join(_sanitised(unit, first=place == 0) for place, unit in enumerate(units))


def _sanitised(unit: int, *, first: bool) -> str:
    letter = chr(unit)
    if letter == "_" or (letter.isascii() and letter.isalpha()):
        return letter
    if letter.isascii() and letter.isdigit():
        return f"_{letter}" if first else letter
    return f"_x{unit:X}"
