"""SHOW in the words of other systems, and statements that stand in FROM.

Imports what ``sql`` may.
"""
