"""Scan tasks: a file range with its deletes, split by size and packed into combined tasks.

In: data files with their deletes and residuals. Out: FileScanTask and CombinedScanTask. May
import: iceberg and below.
"""
