"""Grammars in GBNF and in Lark's notation as rules."""
