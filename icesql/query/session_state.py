"""The session state that a query may read, except the settings in its context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.access import Access
    from icesql.catalog.search_path import SearchPath
    from icesql.config import Settings
    from icesql.query.views.temporary import Temporary
    from icesql.sql.cursor import Constant
    from icesql.sql.macro import Macros


class SessionState(Protocol):
    """The session state as binding, views and SHOW read it; ``session.state`` implements it.

    ``defaults`` are the initial settings of the session. ``variables``, the constants of
    SET VARIABLE, and ``macros`` are keyed by their names in lower case.
    """

    names: SearchPath
    access: Access
    defaults: Settings
    variables: dict[str, exp.Expression | Constant]
    temporary: Temporary
    macros: Macros
