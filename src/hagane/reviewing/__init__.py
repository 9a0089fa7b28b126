"""Checks of a whole project: its files, their settings, the known findings.

``hagane check`` and the language server call ``review.py``; the checker itself is
``hagane.checking``.
"""
