"""Statements in the syntax of other systems: SHOW, PIVOT, PREPARE, and statements in FROM.

Imports what ``sql`` may.
"""
