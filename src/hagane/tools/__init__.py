"""Tools built on the shared cores; independent of each other."""
