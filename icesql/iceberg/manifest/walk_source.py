"""The Python source of a walk over Avro records: how single values are read, skipped and bound.

A generic reader spends its time checking the type of every value; a walk made for one schema checks
once. ``compiled_walk`` says which fields go where. Names from files never enter the source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.schema import AvroNode, OddSchema
from icesql.iceberg.avro.values import BadAvro, compile_reader
from icesql.iceberg.manifest.entries import (
    BYTES_MAP_SKIPS,
    LONG_ARRAY_SKIPS,
    LONG_MAP_SKIPS,
    end_of_map,
    read_long_array,
)
from icesql.iceberg.manifest.schema import INTEGERS

# Branches whose number takes one byte.
_MOST_BRANCHES: Final = 64
# What is read as a Python type, beside the strings and bytes that Avro allows for each other.
_KINDS: Final = {int: INTEGERS, str: ("enum",), bytes: ("fixed",)}


class WalkLines:
    """Collects the lines of a walk and the values that they refer to."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.body: list[str] = []
        self.indent = 3
        self.names: dict[str, Any] = {
            "BadAvro": BadAvro,
            "CorruptFileError": CorruptFileError,
            "end_of_map": end_of_map,
            "read_long_array": read_long_array,
            "long_map_skips": LONG_MAP_SKIPS,
            "bytes_map_skips": BYTES_MAP_SKIPS,
            "long_array_skips": LONG_ARRAY_SKIPS,
        }

    def compile(self) -> Callable[..., None]:
        """The walk as a function of the data, its blocks, and where values go."""
        lines = [
            "def walk(data, blocks, columns, offsets, path):",
            *(" " + line for line in self.head),
            " i = p = 0",
            " for count, end, offset in blocks:",
            "  try:",
            "   for _ in range(count):",
            *(" " + line for line in self.body),
            "    i += 1",
            "   if p != end:",
            "    raise BadAvro('a block does not end where its records end')",
            "  except (IndexError, BadAvro, UnicodeDecodeError) as error:",
            "   problem = 'a block ends early' if isinstance(error, IndexError) else error",
            "   text = f'bad Avro block: {problem}'",
            "   raise CorruptFileError(path, text, offset=offset) from error",
        ]
        # The lines hold words of this file and numbers alone, whatever the writer's schema says:
        # tests/security/test_no_code_from_data.py compares them for two schemas.
        exec(compile("\n".join(lines), "<manifest walk>", "exec"), self.names)
        walk: Callable[..., None] = self.names["walk"]
        return walk

    def add(self, *lines: str) -> None:
        """Append lines at the depth reached."""
        self.body.extend(" " * self.indent + line for line in lines)

    def constant(self, value: Any) -> str:
        """A name for a value that the lines need."""
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    # ------------------------------------------------------------------ values

    def branches(self, node: AvroNode, read: Callable[[AvroNode], None], null: str) -> None:
        """Read a value by its branch of a union, or by its type; ``null`` is the line for null."""

        def one(branch: AvroNode) -> None:
            self.add(null) if branch.kind == "null" else read(branch)

        if node.kind != "union":
            one(node)
            return
        if not 0 < len(node.items) <= _MOST_BRANCHES:
            raise OddSchema(f"a union of {len(node.items)} types")
        self.add("b = data[p]", "p += 1")
        word = "if"
        nulls_last = sorted(enumerate(node.items), key=lambda each: each[1].kind == "null")
        for index, branch in nulls_last:
            self.add(f"{word} b == {2 * index}:")
            self.indent += 1
            one(branch)
            self.indent -= 1
            word = "elif"
        self.add("else:", " raise BadAvro('a union has no such branch')")

    def typed(self, node: AvroNode, kind: type) -> None:
        """Read a value of a Python type into ``v``."""
        if node.kind in ("string", "bytes") and kind is not int:
            node = AvroNode("string" if kind is str else "bytes")
        elif node.kind not in _KINDS[kind]:
            self.wrong(node, kind)
            return
        self.value("v", node)

    def wrong(self, node: AvroNode, kind: type) -> None:
        """Refuse a value of a type that the field cannot have."""
        self.add(f"raise BadAvro('a {node.kind} where a {kind.__name__} belongs')")

    def converted(self, node: AvroNode, convert: Callable[[Any], Any]) -> None:
        """Read what ``convert`` makes of a value into ``v``."""
        self.add(
            f"v, p = {self.constant(compile_reader(node))}(data, p)",
            f"v = {self.constant(convert)}(v)",
        )

    def varint(self, name: str) -> None:
        """Read an integer into the variable ``name``."""
        self.add(
            "b = data[p]",
            "p += 1",
            "if b > 127:",
            " n = b & 127",
            " s = 7",
            " while b > 127:",
            "  if s > 63:",
            "   raise BadAvro('integer longer than 64 bits')",
            "  b = data[p]",
            "  p += 1",
            "  n |= (b & 127) << s",
            "  s += 7",
            f" {name} = (n >> 1) ^ -(n & 1)",
            "else:",
            f" {name} = (b >> 1) ^ -(b & 1)",
        )

    def value(self, name: str, node: AvroNode) -> None:
        """Read a value of any type into the variable ``name``."""
        match node.kind:
            case "int" | "long":
                self.varint(name)
            case "string" | "bytes":
                self.varint("n")
                self.add("if n < 0:", " raise BadAvro('a negative length')", "e = p + n")
                text = "str(data[p:e], 'utf-8')" if node.kind == "string" else "data[p:e]"
                self.add(f"{name} = {text}", "p = e")
            case _:
                self.add(f"{name}, p = {self.constant(compile_reader(node))}(data, p)")

    def jump(self, skips: str, otherwise: Sequence[str]) -> None:
        """Step over a map or array by its number of items, or else the slow way."""
        self.add(
            "n = data[p]",
            "if n == 0:",
            " p += 1",
            "else:",
            " e = p + 1",
            " if n > 127:",
            "  n = n & 127 | data[e] << 7 if data[e] < 128 else 1",
            "  e += 1",
            # An odd number is a negative count, or one of more than two bytes.
            f" m = None if n & 1 or n == 0 else {skips}[n >> 1](data, e)",
            " if m is None:",
            *("  " + line for line in otherwise),
            " else:",
            "  p = m.end()",
        )

    def skip(self, node: AvroNode) -> None:
        """Step over a value that is not needed."""
        if node.kind in INTEGERS:
            self.varint("v")
        else:
            self.add(f"_, p = {self.constant(compile_reader(node))}(data, p)")
