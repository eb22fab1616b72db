"""A small Iceberg writer for tests, made from the specification alone.

Imports nothing of icesql, so that what it writes and what icesql reads are two opinions.
"""
