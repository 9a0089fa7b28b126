"""The compiled step of a module of PyTorch."""
