"""What a query may know of its session, beside the settings in its context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from icesql.access import Access
    from icesql.catalog.search_path import SearchPath
    from icesql.config import Settings
    from icesql.query.views.temporary import Temporary
    from icesql.sql.macros.macro import Macros


class SessionState(Protocol):
    """The state of a session as binding, views and SHOW read it; ``session.state`` holds it."""

    @property
    def names(self) -> SearchPath:
        """Which table a name means."""

    @property
    def access(self) -> Access:
        """What SQL may do."""

    @property
    def defaults(self) -> Settings:
        """What the settings of the session began with."""

    @property
    def variables(self) -> Mapping[str, exp.Expression]:
        """The constants of SET VARIABLE, by their names in lower case."""

    @property
    def temporary(self) -> Temporary:
        """The temporary views and tables."""

    @property
    def macros(self) -> Macros:
        """The macros, by their names in lower case."""
