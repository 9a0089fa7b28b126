"""The language of probabilistic programs: text, syntax tree, names and kinds."""
