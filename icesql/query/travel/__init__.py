"""Times and versions to travel to, and ranges of changes.

In: references and times. Out: scans, instants, and references whose versions are known. May
import: what ``query`` may.
"""
