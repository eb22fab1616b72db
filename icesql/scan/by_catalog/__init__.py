"""Scans that the catalog plans: what it is asked, and its answer as tasks.

Comes in: a TableScan whose table has ``planning``. Goes out: a ScanPlan. May import what ``scan``
may.
"""
