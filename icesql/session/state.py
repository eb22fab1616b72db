"""The state of a session between statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.catalog.search_path import SearchPath
from icesql.query.views.temporary import Temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from sqlglot import exp

    from icesql.access import Access
    from icesql.catalog.table import Catalog
    from icesql.commit.transaction import Transaction
    from icesql.config import Settings
    from icesql.sql.constant import Constant
    from icesql.sql.macros.macro import Macros
    from icesql.storage.cache import BoundedCache


class State:
    """Names, settings and all that statements leave for those after them.

    Rooms below see it as ``query.session_state.SessionState`` and ``modify.services``.
    """

    def __init__(
        self,
        open_catalog: Callable[[BoundedCache], Catalog | None],
        cache: BoundedCache,
        access: Access,
        settings: Settings,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.access = access
        # What RESET goes back to.
        self.defaults = self.settings = settings
        # What BEGIN has opened, and whether a change outside of it is a commit by itself.
        self.transaction: Transaction | None = None
        self.autocommit = True
        self.names = SearchPath(open_catalog, cache, access, properties, lambda: self.transaction)
        # The constants of SET VARIABLE, by their names in lower case.
        self.variables: dict[str, exp.Expression | Constant] = {}
        self.temporary = Temporary()
        # By their names in lower case.
        self.macros: Macros = {}
        # The texts of PREPARE, by their names.
        self.prepared: dict[str, str] = {}

    def close(self) -> None:
        """Give up an open transaction, and close the catalogs."""
        self.names.refuse()
        if self.transaction is not None:
            self.transaction.rollback()
        self.names.close()
