"""The checker's knowledge of other libraries: names, and the operators they stand for."""
