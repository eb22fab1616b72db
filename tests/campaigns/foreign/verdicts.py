"""What icesql made of a statement, held against a reference that answers over the same rows.

same      the same columns, names, values, and order
ties      the same rows in another order, which ORDER BY left open
random    the reference itself answers differently the second time
names     the same rows under other column names
WRONG     other rows, without an error
refused   icesql names what it does not do
error     another error of icesql
FOREIGN   an exception that is none of icesql's
slow      icesql's time limit ended it
both      neither answers
laxer     only icesql answers
unjudged  the reference took too long
uncopied  a table of the statement could not be copied
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.campaigns.foreign.answers import Answer, differ, first_difference

ANSWERED = (
    "same",
    "ties",
    "random",
    "open",
    "names",
    "WRONG",
    "refused",
    "error",
    "FOREIGN",
    "slow",
)
VERDICTS = (*ANSWERED, "both", "laxer", "elsewhere", "unjudged", "uncopied")


@dataclass(frozen=True)
class Failure:
    """Why there is no answer: the error, or that the reference took too long."""

    error: BaseException
    slow: bool = False


@dataclass(frozen=True)
class Verdict:
    """One word of the list above, and what there is to say of it."""

    word: str
    note: str = ""


Ask = Callable[[], Answer | Failure]


def judge(reference: Ask, asked: Ask, reordered: Sequence[Ask] = ()) -> Verdict:
    """The verdict on one statement; each function asks once.

    ``reference`` may be called again, and ``reordered`` are it over rows in other orders.
    """
    import icesql

    expected, found = reference(), asked()
    if isinstance(expected, Failure):
        if expected.slow:
            return Verdict("unjudged")
        if isinstance(found, Failure):
            if not isinstance(found.error, icesql.Error):
                return Verdict("FOREIGN", said(found.error))
            return Verdict("both", f"{said(expected.error)} / {said(found.error)}")
        return Verdict("laxer", said(expected.error))
    if isinstance(found, Failure):
        return _refused(found.error)
    kind = differ(expected, found)
    if kind is None:
        return Verdict("same")
    if kind == "names":
        return Verdict("names", first_difference(expected, found))
    again = reference()
    if isinstance(again, Failure) or differ(expected, again) not in (None, "order"):
        return Verdict("random")
    if kind == "order":
        return Verdict("ties")
    for other in (ask() for ask in reordered):
        if isinstance(other, Failure) or differ(expected, other) not in (None, "order"):
            return Verdict("open", first_difference(expected, found))
    return Verdict("WRONG", f"{kind}: {first_difference(expected, found)}")


def _refused(error: BaseException) -> Verdict:
    import icesql
    from icesql import errors

    if not isinstance(error, icesql.Error):
        return Verdict("FOREIGN", said(error))
    if isinstance(error, errors.QueryCancelledError):
        return Verdict("slow", said(error))
    if isinstance(error, icesql.NotSupportedError):
        return Verdict("refused", said(error))
    return Verdict("error", said(error))


def said(error: Any) -> str:
    """The class and the first line of an error."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]:.300}"
