"""Skip manifests and files by partition values and column metrics, and say why.

In: a predicate and manifest entries. Out: masks of the entries that can match, residual
predicates, and the reason for each skipped file. May import: iceberg and below.
"""
