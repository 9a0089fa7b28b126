"""Checks of a whole project: its files, what is asked of them, what is known already.

``hagane check`` and the language server call ``review.py``; the checker itself is
``hagane.checking``.
"""
