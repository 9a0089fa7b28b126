"""Functions that make tensors, move their elements and tell of them."""
