"""Tables at another place: their metadata with other paths in it, and copies of their files.

In: a table, and where it is to lie. Out: a copy that any reader reads, or a folder of rewritten
metadata and the list of what has to be copied. May import: what ``maintain`` may.
"""
