"""Functions that layers of networks are made of."""
