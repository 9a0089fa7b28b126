"""Tools that stand beside the models: each in a package of its own, knowing none of the others."""
