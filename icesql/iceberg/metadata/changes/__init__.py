"""Changes of table metadata as values: updates, requirements, and the metadata that they make.

In: the JSON of a metadata file and updates. Out: the JSON of the next one. May import: iceberg.
"""
