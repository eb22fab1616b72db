"""CALL, and equivalent statements of other systems."""
