"""PyTorch: what its names mean to the checker (https://pytorch.org/docs/stable/)."""

from hagane.frontends.libraries.torch import (
    asking,
    attributes,
    converting,
    creating,
    differentiating,
    distributions,
    elementwise,
    fourier,
    gathering,
    initialising,
    joining,
    layers,
    layers_applying,
    layers_attending,
    layers_convolving,
    layers_normalising,
    layers_recurring,
    linalg,
    losses,
    module,
    normalising,
    products,
    recurrent,
    reducing,
    shaping,
    unary,
    windows,
)
from hagane.frontends.libraries.torch.table import TORCH

# Importing a module enters its functions into the table.
PARTS = (
    asking, attributes, converting, creating, differentiating, distributions, elementwise,
    fourier, gathering, initialising,
    joining, layers, layers_applying, layers_attending, layers_convolving, layers_normalising,
    layers_recurring, linalg, losses, module, normalising, products, recurrent, reducing, shaping,
    unary, windows,
)  # fmt: skip

__all__ = ["PARTS", "TORCH"]
