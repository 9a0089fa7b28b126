"""State that all rules share on the way from nodes to kernels."""
