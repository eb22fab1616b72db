"""The manual: chapters in Markdown, found by topic or by words, and laid out for a terminal.

Imports ``errors`` only; only the command and the shell import it.
"""
