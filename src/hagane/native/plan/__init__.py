"""Which nodes are compiled, and in which parts."""
