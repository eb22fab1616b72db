"""Object stores: requests, the cache of their bytes on disk, and files read over both.

In: URIs, ranges, properties. Out: bytes, or StorageError with the store's own reason. May import:
what ``storage`` may.
"""
