"""Damage that keeps the form of a file and changes what it says.

Each damage is known by its role and by ``what`` was changed, such as ``footer.4.*.3`` for the
number of rows of a row group: wrong rows are counted by that.
"""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import fastavro

from tests.damage import thrift_tree
from tests.damage.damages import Damage, random_damage

INTEGERS = (0, 1, -1, 2, 127, 1 << 31, (1 << 31) - 1, (1 << 63) - 1, -(1 << 63), 1 << 40)


def structured_damage(seed, table):
    """The damage of this seed: a file of some role, and a change that its format allows."""
    chance = random.Random(seed)
    role = chance.choice(sorted(table.files))
    path = chance.choice(table.files[role])
    before = Path(path).read_bytes()
    for _ in range(8):
        kind = chance.choice(_kinds(role, path))
        others = [[each for each in table.files[role] if each != path]] * (kind == "other file")
        changed = _CHANGES[kind](chance, before, *others)
        if changed is not None and changed[1] != before:
            what, after = changed
            return Damage(kind, role, path, None, what, before, after)
    return random_damage(seed, table)


def _kinds(role, path):
    if role == "metadata":
        return ("json", "json", "json", "bytes")
    if role in ("list", "manifest"):
        return ("avro", "avro", "avro", "record", "bytes")
    if role in ("data", "delete"):
        if path.endswith((".parquet", ".parq")):
            return ("footer", "footer", "page", "page data", "other file", "bytes")
        return ("tail", "bytes", "other file")
    return ("bytes", "tail")


def _value(chance, value):
    match value:
        case bool():
            return not value
        case int():
            return chance.choice((*INTEGERS, value + 1, value - 1, value * 2, -value))
        case float():
            return chance.choice((0.0, -value, float("nan"), float("inf")))
        case str():
            return chance.choice(("", value[:-1], value + "x", value.upper(), "\0", value * 2, "∞"))
        case bytes():
            cut = chance.randrange(len(value) + 1)
            return chance.choice((b"", value[:cut], value + b"\xff", value[::-1], b"\xff" * 9))
        case list():
            if not value:
                return value
            at = chance.randrange(len(value))
            return chance.choice(
                (
                    [],
                    value[:at] + value[at + 1 :],
                    [*value, value[at]],
                    value[::-1],
                    value * 20,
                )
            )
        case _:
            return value


# ------------------------------------------------------------------ JSON


def _json(chance, before):
    try:
        tree = json.loads(before)
    except ValueError:
        return None  # compressed
    places = list(_places(tree, ()))
    parent, key, names = chance.choice(places)
    old = parent[key]
    choice = chance.random()
    if choice < 0.15 and isinstance(parent, dict):
        del parent[key]
    elif choice < 0.3:
        parent[key] = chance.choice((None, 7, "text", [], {}, True, [old], 1.5))
    else:
        parent[key] = _value(chance, old)
    return ".".join(names), json.dumps(tree).encode()


def _places(node, names):
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        here = (*names, key if isinstance(key, str) else "*")
        yield node, key, here
        if isinstance(value, dict | list):
            yield from _places(value, here)


# ------------------------------------------------------------------ Avro


def _records(before):
    reader = fastavro.reader(io.BytesIO(before))
    return reader.writer_schema, reader.codec, dict(reader.metadata), list(reader)


def _written(schema, codec, metadata, rows):
    kept = {key: value for key, value in metadata.items() if not key.startswith("avro.")}
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, codec=codec, metadata=kept)
    return out.getvalue()


def _avro(chance, before):
    try:
        schema, codec, metadata, rows = _records(before)
    except Exception:  # an odd container is damaged by bytes instead
        return None
    places = [place for row in rows for place in _places(row, ())]
    if not places:
        return None
    parent, key, names = chance.choice(places)
    parent[key] = None if chance.random() < 0.1 else _value(chance, parent[key])
    try:
        return ".".join(names), _written(schema, codec, metadata, rows)
    except Exception:  # the schema does not have such a value
        return None


def _record(chance, before):
    try:
        schema, codec, metadata, rows = _records(before)
    except Exception:
        return None
    if not rows:
        return None
    at = chance.randrange(len(rows))
    what, rows = chance.choice(
        (
            ("record twice", [*rows, rows[at]]),
            ("record 300 times", [*rows, *[rows[at]] * 299]),
            ("record missing", rows[:at] + rows[at + 1 :]),
            ("records reversed", rows[::-1]),
        )
    )
    return what, _written(schema, codec, metadata, rows)


# ------------------------------------------------------------------ Parquet


def _nodes(tree, names=()):
    """(container, key, names) of every value of a Thrift tree that can be changed."""
    for field, (kind, value) in tree.items():
        here = (*names, str(field))
        yield tree, field, here
        if kind == thrift_tree.STRUCT:
            yield from _nodes(value, here)
        elif kind == thrift_tree.LIST and value[0] == thrift_tree.STRUCT:
            for each in value[1]:
                yield from _nodes(each, (*here, "*"))


def _change_node(chance, tree, field):
    kind, value = tree[field]
    if kind in thrift_tree.INTS or kind == thrift_tree.BINARY:
        tree[field] = kind, _value(chance, value)
    elif kind == thrift_tree.LIST:
        tree[field] = kind, (value[0], _value(chance, value[1]))
    else:
        del tree[field]


def _footer(chance, before):
    try:
        tree, pages = thrift_tree.read_footer(before)
        # Row groups and their chunks are a small part of a wide footer, and matter most.
        nodes = list(_nodes(tree))
        telling = [node for node in nodes if node[2][0] == "4" and node[2][-1] in "1357"]
        parent, field, names = chance.choice(
            telling if telling and chance.random() < 0.5 else nodes
        )
        _change_node(chance, parent, field)
        return "footer." + ".".join(names), thrift_tree.with_footer(pages, tree)
    except (IndexError, KeyError, OverflowError):
        return None


def _page_places(before):
    tree, _ = thrift_tree.read_footer(before)
    for group in thrift_tree.row_groups(tree):
        for chunk in thrift_tree.chunks(group):
            first = chunk[11][1] if 11 in chunk else chunk[9][1]
            at, end = min(first, chunk[9][1]), min(first, chunk[9][1]) + chunk[7][1]
            while at < end:
                header, body = thrift_tree.read_page(before, at)
                yield at, header, body
                at = body + header[3][1]


def _page(chance, before):
    try:
        at, header, body = chance.choice(list(_page_places(before)))
        parent, field, names = chance.choice(list(_nodes(header)))
        counts = [node for node in _nodes(header) if node[2] in (("5", "1"), ("8", "1"))]
        if counts and chance.random() < 0.4:
            parent, field, names = chance.choice(counts)
        _change_node(chance, parent, field)
        after = before[:at] + thrift_tree.write(header) + before[body:]
        return "page." + ".".join(names), after
    except (IndexError, KeyError, OverflowError):
        return None


def _page_data(chance, before):
    try:
        _, header, body = chance.choice(list(_page_places(before)))
    except (IndexError, KeyError):
        return None
    if not header[3][1]:
        return None
    changed = bytearray(before)
    for _ in range(chance.choice((1, 1, 3))):
        changed[body + chance.randrange(header[3][1])] ^= 1 << chance.randrange(8)
    return "page data", bytes(changed)


# ------------------------------------------------------------------ any file


def _other_file(chance, before, others):
    if not others:
        return None
    after = Path(chance.choice(others)).read_bytes()
    same = "same" if len(after) == len(before) else "another"
    return f"another file of {same} length", after


def _bytes(chance, before):
    if not before:
        return None
    at = chance.randrange(len(before))
    changed = bytearray(before)
    what = chance.choice(("flip", "flip", "zero", "cut", "insert", "twice"))
    if what == "flip":
        changed[at] ^= 1 << chance.randrange(8)
    elif what == "zero":
        changed[at : at + 16] = bytes(len(changed[at : at + 16]))
    elif what == "cut":
        del changed[at:]
    elif what == "insert":
        changed[at:at] = bytes([chance.randrange(256)]) * chance.choice((1, 8))
    else:
        changed += before
    return what, bytes(changed)


def _tail(chance, before):
    """A flip where the footers of ORC and Puffin and the last block of Avro are."""
    if not before:
        return None
    changed = bytearray(before)
    at = len(before) - 1 - chance.randrange(min(len(before), 400))
    changed[at] = chance.choice((0, 255, changed[at] ^ 1, chance.randrange(256)))
    return "tail", bytes(changed)


_CHANGES = {
    "json": _json,
    "avro": _avro,
    "record": _record,
    "footer": _footer,
    "page": _page,
    "page data": _page_data,
    "other file": _other_file,
    "bytes": _bytes,
    "tail": _tail,
}
