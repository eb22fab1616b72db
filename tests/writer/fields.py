"""Fields of a schema and of a partition spec in Iceberg's JSON, from a text."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

_WORDS = re.compile(r"\w+[(\[][^)\]]*[)\]]|[<>,!]|[^\s<>,!]+")


def fields(text: str, first: int = 1) -> list[dict[str, Any]]:
    """Fields of ``id long!, s struct<a int>, l list<string>, m map<string, decimal(9, 2)>``.

    ``!`` marks what is required. Ids count from ``first`` in the order of the text, those of a
    list or map before those within its elements.
    """
    words, ids = _WORDS.findall(text)[::-1], count(first)

    def is_next(word: str) -> bool:
        return words[-1:] == [word] and bool(words.pop())

    def members() -> list[dict[str, Any]]:
        found = []
        while words and not is_next(">"):
            number, name, kind = next(ids), words.pop(), type_()
            found.append({"id": number, "name": name, "required": is_next("!"), "type": kind})
            is_next(",")
        return found

    def type_() -> Any:
        kind = words.pop()
        if not is_next("<"):
            return kind
        if kind == "struct":
            return {"type": kind, "fields": members()}
        node: dict[str, Any] = {"type": kind}
        for part in ("element",) if kind == "list" else ("key", "value"):
            node[f"{part}-id"] = next(ids)
            node[part] = type_()
            if part != "key":
                node[f"{part}-required"] = is_next("!")
            is_next(",")
        is_next(">")
        return node

    return members()


def spec(text: str, first: int = 1000) -> list[dict[str, Any]]:
    """Fields of ``3 day at_day, 1 bucket[16] id_bucket``: a source id, a transform and a name."""
    return [
        {"source-id": int(source), "field-id": number, "transform": transform, "name": name}
        for number, (source, transform, name) in enumerate(map(str.split, text.split(",")), first)
    ]
