"""The base of values that never change, which is most of what the rooms hand to each other."""

from __future__ import annotations

from typing import dataclass_transform

from msgspec import Struct, field


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(Struct, frozen=True):
    """A struct whose fields are set once, when it is made; two with equal fields are equal."""
