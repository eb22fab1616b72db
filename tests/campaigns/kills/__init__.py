"""The parts of ``killed_statements.py``: what is run, how it is slowed and killed, what is checked."""
