"""Operators of users: from Python, C source, or an expression."""

from hagane.ops.own.register import forget_operator, register_operator

__all__ = ["forget_operator", "register_operator"]
