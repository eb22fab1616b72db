"""What each procedure of CALL does to a table: its plan, and what carries it out."""
