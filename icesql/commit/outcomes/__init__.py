"""How a commit ended, where no certain answer said so: by looks at its tables.

In: what was sent, and a table as it is now. Out: applied, over, or open. May import: catalog,
storage, iceberg, errors; commit's attempts.
"""
