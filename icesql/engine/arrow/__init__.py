"""Arrow data of results: arrays in, Python values out.

May import what ``icesql.engine`` may, and pyarrow and numpy: it is imported where Arrow is read.
"""
