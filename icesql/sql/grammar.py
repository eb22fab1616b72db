"""stub"""
from __future__ import annotations
def expected_after(text: str) -> tuple[str, ...]:
    return ()
