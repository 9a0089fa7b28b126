"""PyTorch: the meaning of its names to the checker (https://pytorch.org/docs/stable/)."""

from hagane.frontends.libraries.torch import composing
from hagane.frontends.libraries.torch.functions import in_place
from hagane.frontends.libraries.torch.functions.arrays import (
    asking,
    attributes,
    converting,
    creating,
    cutting,
    drawing,
    gathering,
    joining,
    ordering,
    ranges,
    repeating,
    shaping,
    sparse,
)
from hagane.frontends.libraries.torch.functions.networks import (
    attending,
    dropping,
    embedding,
    losses,
    normalising,
    recurrent,
    resizing,
    weighing,
    windows,
)
from hagane.frontends.libraries.torch.functions.numbers import (
    differentiating,
    distances,
    distributions,
    elementwise,
    extremes,
    fourier,
    linalg,
    lu,
    products,
    quantizing,
    reducing,
    transformed,
    unary,
)
from hagane.frontends.libraries.torch.layers import (
    applying,
    containers,
    convolving,
    initialising,
    module,
    plain,
    recurring,
)
from hagane.frontends.libraries.torch.layers import attending as layers_attending
from hagane.frontends.libraries.torch.layers import normalising as layers_normalising
from hagane.frontends.libraries.torch.published.element_types import checked
from hagane.frontends.libraries.torch.published.layouts import lay
from hagane.frontends.libraries.torch.published.signatures import fitting
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.libraries.torch.training import (
    casting,
    data,
    gradients,
    hooks,
    optimizers,
    precision,
    processes,
    schedules,
    stopping,
    transforms,
)

# Importing a module enters its functions into the table.
PARTS = (
    asking, attributes, converting, creating, drawing, cutting, gathering, joining, ordering,
    ranges, repeating, shaping, sparse,
    transformed, differentiating, distances, distributions, elementwise, extremes, fourier, linalg,
    lu, products, quantizing, reducing, unary,
    attending, dropping, embedding, losses, normalising, recurrent, resizing, weighing, windows,
    applying, containers, layers_attending, convolving, initialising, layers_normalising, module,
    plain, recurring,
    composing, casting, data, gradients, hooks, optimizers, precision, processes, schedules,
    stopping, transforms,
)  # fmt: skip
in_place.enter()
TORCH.fitting = fitting
TORCH.checked = checked
TORCH.lay = lay

__all__ = ["PARTS", "TORCH"]
