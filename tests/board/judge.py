"""Decide whether an engine's answer is the known one: its verdict, and why it isn't `right`."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

RIGHT, REFUSED, WRONG, CRASHED, SLOW = "right", "refused", "wrong", "crashed", "too slow"
VERDICTS: Final = (RIGHT, REFUSED, WRONG, CRASHED, SLOW)

# A refusal says that something isn't there; any other error is one that nobody meant.
_REFUSAL: Final = re.compile(
    r"not (yet |currently |been )?(supported|implemented|allowed)|unsupported|unimplemented"
    r"|(does|do|is|can)(n't| not) (yet )?support|not_implemented|only supports?|support(s|ed) only"
    r"|NotImplemented|NotSupported|NotOffered|FeatureUnsupported|cannot yet|can't yet"
    # It names the thing, if in other words.
    r"|unrecognized|unknown [\w/ ]*type|is encrypted|encrypted (footer|metadata)|encryption[._]|_row_id|GeometryType",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"[-+]?(\d+(\.\d*)?([eE][-+]?\d+)?|inf|nan)")
_TIMESTAMP: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]00:?00)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d\.\d+")


def verdict(expected: list[list[str | None]], answer: dict[str, Any] | None) -> tuple[str, str]:
    """The verdict on an answer in the protocol's form, and what was wrong; None is no answer.

    `expected` holds canonical text, nested values as JSON of it; rows compare in any order.
    """
    if answer is None:
        return CRASHED, "the process ended"
    if "error" in answer:
        text = f"{answer['error']}: {answer['text']}"
        return (REFUSED if _REFUSAL.search(text) else CRASHED), text
    rows = answer["rows"]
    if len(rows) != len(expected):
        return WRONG, f"{len(rows)} rows instead of {len(expected)}"
    missing = _unmatched(expected, rows)
    if missing:
        want, got = missing
        return WRONG, f"expected the row {json.dumps(want)}, got instead {json.dumps(got)}"
    return RIGHT, ""


def _unmatched(expected: list[list[str | None]], rows: list[list[Any]]) -> tuple[Any, Any] | None:
    """A row that is not in the answer, with one of the answer's that is left over."""
    same = Counter(json.dumps(row) for row in rows)
    same &= Counter(json.dumps(row) for row in expected)
    left, rest = _without(expected, same), _without(rows, same)
    for want in left:
        found = next((at for at, row in enumerate(rest) if _same_row(want, row)), None)
        if found is None:
            return want, max(rest, key=lambda row: sum(map(_same_cell, want, row)))
        del rest[found]
    return None


def _without(rows: list[Any], taken: Counter[str]) -> list[Any]:
    taken, left = taken.copy(), []
    for row in rows:
        key = json.dumps(row)
        if taken[key]:
            taken[key] -= 1
        else:
            left.append(row)
    return left


def _same_row(want: list[str | None], row: list[Any]) -> bool:
    return len(want) == len(row) and all(map(_same_cell, want, row))


def _same_cell(want: str | None, got: Any) -> bool:
    if want is not None and isinstance(got, (list, dict)):
        try:
            return _same_nested(json.loads(want), got)
        except ValueError:
            return False
    return _same_scalar(want, got)


def _same_scalar(want: Any, got: Any) -> bool:
    """Equal, or the same value as another type of the engine writes it."""
    if isinstance(want, (bool, int, float)):  # inside of a variant
        want = json.dumps(want)
    if want is None or not isinstance(got, str):
        return want == got
    if want == got or (want[:1] in '"{[' and _same_json(want, got)):
        return True
    if _NUMBER.fullmatch(want) and _NUMBER.fullmatch(got):
        left, right = float(want), float(got)
        near = abs(left - right) <= 1e-9 * max(abs(left), abs(right))
        return near or left == right or (left != left and right != right)
    if want.startswith("0x") and not got.startswith("0x"):
        return want == "0x" + got.encode().hex()
    if _UUID.fullmatch(want):
        return got == "0x" + want.replace("-", "")
    if (left_time := _TIMESTAMP.fullmatch(want)) and (right_time := _TIMESTAMP.fullmatch(got)):
        return _instant(left_time) == _instant(right_time)
    if _TIME.fullmatch(want) or _TIME.fullmatch(got):
        return want.rstrip("0").rstrip(".") == got.rstrip("0").rstrip(".")
    return False


def _same_json(want: str, got: str) -> bool:
    """A variant as JSON, however it is spaced and escaped; a string may come without its quotes."""
    try:
        value = json.loads(want)
        return value == got or value == json.loads(got)
    except ValueError:
        return False


def _instant(found: re.Match[str]) -> tuple[str, str, str]:
    """Without the zone, which is UTC: some engines have timestamps of one kind alone."""
    return found[1], found[2], (found[3] or "").rstrip("0").rstrip(".")


def _same_nested(want: Any, got: Any) -> bool:
    """Structs are objects, lists are lists; a map is pairs, an object or {key, value} objects."""
    if isinstance(want, dict):
        if isinstance(got, str) and got.startswith("{"):
            got = json.loads(got)  # the key of a map
        if not isinstance(got, dict) or want.keys() != got.keys():
            return False
        return all(_same_nested(each, got[name]) for name, each in want.items())
    if isinstance(want, str) and isinstance(got, (dict, list)) and want[:1] in ("{", "["):
        return _same_nested(json.loads(want), got)  # a variant
    if not isinstance(want, list):
        return _same_scalar(want, got) or (want == "null" and got is None)
    if isinstance(got, dict):
        got = [list(each) for each in got.items()]
    if not isinstance(got, list) or len(want) != len(got):
        return False
    if all(map(_same_nested, want, got)):
        return True
    pairs = [_pair(each) for each in got]
    if not all(isinstance(each, list) and len(each) == 2 for each in (*want, *pairs)):
        return False
    return all(any(_same_nested(each, other) for other in pairs) for each in want)


def _pair(entry: Any) -> Any:
    if isinstance(entry, dict) and entry.keys() == {"key", "value"}:
        return [entry["key"], entry["value"]]
    return entry
