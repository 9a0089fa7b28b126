"""Tables of PyTorch's own functions, as an installed PyTorch tells them."""
