"""Move tables to another place: metadata with other paths in it, and copies of the files.

In: a table, and its new location. Out: a copy for every reader, or a folder of rewritten
metadata and the list of files to copy. May import: what ``maintain`` may.
"""
