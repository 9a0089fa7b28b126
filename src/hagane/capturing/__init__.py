"""``hagane.capture``, ``hagane.compile`` and ``hagane.trace``: Python programs as models.

The package loads nothing by itself: ``compile`` has the engine made while the rest is read.
"""
