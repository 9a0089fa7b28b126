"""Define-by-run: variables, links, functions, optimizers."""
