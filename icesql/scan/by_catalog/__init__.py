"""Scans that the catalog plans: the request to it, and its response as tasks.

Comes in: a TableScan whose table has ``planning``. Goes out: a ScanPlan. May import what ``scan``
may.
"""
