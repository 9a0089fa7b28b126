"""Python source to a graph: the interpreter over values that are nodes."""
