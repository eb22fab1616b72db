"""What the campaigns over other systems' test suites share: files, copies, answers, verdicts."""
