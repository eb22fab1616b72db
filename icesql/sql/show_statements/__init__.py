"""Statements in the words of other systems: SHOW, PIVOT, PREPARE, and those that stand in FROM.

Imports what ``sql`` may.
"""
