"""Load delete files and apply them: positions, deletion vectors and equality keys.

In: the delete files of a task. Out: position sets and key relations, and which rows of a batch
live. May import: what ``read`` may.
"""
