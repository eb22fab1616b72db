"""PIVOT and UNPIVOT in DuckDB's two spellings, as far as the tree has to know them.

The user's own text runs. The tree says which tables and columns are read; DuckDB's parser makes
``SELECT * FROM`` of a statement, to whose source the PIVOT belongs.

``PIVOT t ON c USING sum(x)`` has a column for each value of c. Until these are read one text holds
the place of their list: ``ON c IN ('…')``; see ``query.pivot_values``.
"""

from __future__ import annotations

from typing import Final

NO_VALUES: Final = "PIVOT without a list of values"
LISTED: Final = "list the values: PIVOT t ON y IN ('a', 'b') USING sum(x)"
# The list of values that are not read yet, of a character that no keyboard has.
UNREAD: Final = "('\ue000values\ue000')"
