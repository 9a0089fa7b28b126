"""Passes that recognise an operator in the nodes that an exporter wrote for it."""
