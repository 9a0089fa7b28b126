"""From kernels to a program that runs."""
