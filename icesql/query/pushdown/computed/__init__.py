"""Conditions that the engine evaluates for pruning: constants, and functions of a file's bounds.

In: a condition as parsed by the engine. Out: a simpler condition that it implies, for
the translator, and a condition that the engine evaluates with the values and bounds of each file.
May import: what ``query.pushdown`` may.
"""
