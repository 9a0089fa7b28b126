"""Functions and methods of PyTorch."""
