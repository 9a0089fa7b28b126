"""Regular expressions: text to syntax tree, over sets of characters."""
