"""How images lie in blocks, pairs and quads, and the kernels that bring them there."""
