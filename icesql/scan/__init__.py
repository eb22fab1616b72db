"""Plan a scan: which files, byte ranges and deletes it needs.

In: a TableScan (table, snapshot, projection, row filter). Out: a ScanPlan (tasks and a report).
Knows no SQL. May import: catalog, storage, iceberg, context, config, errors.
"""
