"""Shared parts of the campaigns over other systems' test suites: files, copies, verdicts."""
