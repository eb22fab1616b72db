"""Load delete files and apply them: positions, deletion vectors and equality keys.

In: the delete files of a task. Out: position sets and key relations, and masks of the live rows of
a batch. May import: what ``read`` may.
"""
