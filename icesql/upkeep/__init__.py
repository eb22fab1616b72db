"""A policy and what a table is like go in; the calls that keep it healthy, and their report, out.

``policy`` and ``actions`` are values, ``needs`` chooses, ``of_table`` carries out, ``lake`` goes
from table to table. Statements are run by whoever asks: nothing here knows a session.
"""
