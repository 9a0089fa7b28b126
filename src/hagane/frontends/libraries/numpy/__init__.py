"""NumPy: the meaning of its names to the checker (https://numpy.org/doc/stable/reference/)."""

from hagane.frontends.libraries.numpy import (
    accumulating,
    composing,
    creating,
    drawing,
    files,
    joining,
    matrices,
    methods,
    products,
    quantiles,
    reducing,
    searching,
    shaping,
    sorting,
    ufuncs,
)
from hagane.frontends.libraries.numpy.table import NUMPY

# Importing a module enters its functions into the table.
PARTS = (
    accumulating, composing, creating, drawing, files, joining, matrices, methods, products,
    quantiles, reducing, searching, shaping, sorting, ufuncs,
)  # fmt: skip

__all__ = ["NUMPY", "PARTS"]
