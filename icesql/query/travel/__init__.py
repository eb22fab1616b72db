"""Times and versions of time travel, and ranges of changes.

In: references and times. Out: scans, instants, and references with known versions. May
import: what ``query`` may.
"""
