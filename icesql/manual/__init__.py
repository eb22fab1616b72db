"""The manual: chapters in Markdown, found by topic or by words, and laid out for a terminal.

Imports ``errors`` only; nothing but the command and the shell imports it.
"""
