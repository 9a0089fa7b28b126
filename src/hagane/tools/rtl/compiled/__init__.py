"""The model of a cycle as compiled C: fast runs, long random ones, coverage of all goals."""
