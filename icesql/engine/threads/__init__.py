"""Threads of a statement: one that runs it, those that work beside its reader."""
