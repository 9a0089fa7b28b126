"""Arguments, results and lasting state of a program as inputs and outputs of a graph."""
