"""CALL, and other systems' words for the same."""
