"""Views and temporary tables: insert the texts of views into the statement that reads them.

In: a ``Query``, and the objects of the session and the catalogs. Out: a ``Query`` without views.
May import what ``query`` may.
"""
