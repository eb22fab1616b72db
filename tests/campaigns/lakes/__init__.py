"""Generated lakes: their tables, what is known of them, and writers beside maintenance."""
