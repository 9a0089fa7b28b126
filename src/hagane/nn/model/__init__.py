"""Links: parameters with the functions that use them."""
