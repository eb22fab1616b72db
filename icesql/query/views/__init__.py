"""Views and temporary tables: the texts of views put into the statement that reads them.

In: a ``Query`` and what the session and the catalogs have. Out: a ``Query`` without views. May
import what ``query`` may.
"""
