"""Threads of a statement: one runs it, others work beside the reader of its result."""
