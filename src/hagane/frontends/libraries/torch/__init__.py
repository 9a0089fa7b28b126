"""PyTorch: what its names mean to the checker (https://pytorch.org/docs/stable/)."""

from hagane.frontends.libraries.torch import (
    attributes,
    creating,
    elementwise,
    initialising,
    layers,
    losses,
    module,
    normalising,
    products,
    recurrent,
    reducing,
    shaping,
    windows,
)
from hagane.frontends.libraries.torch.table import TORCH

# Importing a module enters its functions into the table.
PARTS = (
    attributes, creating, elementwise, initialising, layers, losses, module, normalising, products, recurrent,
    reducing, shaping, windows,
)  # fmt: skip

__all__ = ["PARTS", "TORCH"]
