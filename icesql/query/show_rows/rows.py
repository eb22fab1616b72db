"""What a statement shows: columns with their kinds, and rows of Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Columns = Sequence[tuple[str, str]]
Rows = list[tuple[Any, ...]]
