"""What the checker knows of other libraries: names, and the operators they stand for."""
