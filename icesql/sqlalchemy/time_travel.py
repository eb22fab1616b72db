"""Tables as they were, as something that SQLAlchemy selects from."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy.sql.selectable import Alias, FromClause
from sqlalchemy.sql.visitors import InternalTraversal


class TravelledTable(Alias):
    """A table at a version or at a time; its columns are those of ``element``, under ``name``."""

    __visit_name__ = "travelled_table"
    _traverse_internals = [  # noqa: RUF012 - of each instance, as SQLAlchemy declares it
        *Alias._traverse_internals,
        ("version", InternalTraversal.dp_plain_obj),
        ("instant", InternalTraversal.dp_plain_obj),
    ]
    inherit_cache = False

    version: str | int | None
    instant: str | None

    def _init(self, selectable: Any, *, name: str | None = None) -> None:
        super()._init(selectable, name=name)
        self.version = self.instant = None


def with_version(table: FromClause, version: str | int, *, name: str | None = None) -> FromClause:
    """``table`` at a branch, a tag or a snapshot id, as ``VERSION AS OF`` takes them.

    ``name`` is its alias in the statement; SQLAlchemy makes one where it is None.
    """
    travelled: TravelledTable = TravelledTable._construct(table, name=name)
    travelled.version = version
    return travelled


def as_of(table: FromClause, instant: datetime | str, *, name: str | None = None) -> FromClause:
    """``table`` at a time, as ``TIMESTAMP AS OF`` takes it: a text is one of icesql's forms.

    A datetime without a zone means the session's. ``name`` is as in ``with_version``.
    """
    travelled: TravelledTable = TravelledTable._construct(table, name=name)
    travelled.instant = instant if isinstance(instant, str) else instant.isoformat(" ")
    return travelled
