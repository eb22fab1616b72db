"""Conditions that the engine computes for pruning: constants, and functions of a file's bounds.

In: a condition as the engine's own parser reads it. Out: a simpler condition that it implies, for
the translator, and what the engine is compared with the values and bounds of each file. May import:
what ``query.pushdown`` may.
"""
