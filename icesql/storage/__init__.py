"""STORE ROOM: paths in, bytes out; re-rooting of moved tables happens here.

May import: iceberg, context, config, errors.
"""
