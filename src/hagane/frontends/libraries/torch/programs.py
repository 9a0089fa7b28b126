"""Functions of PyTorch as programs over others of its functions, interpreted like the user's own.

PyTorch is imported where a program is interpreted: hagane works without it.

https://docs.pytorch.org/docs/stable/torch.html
"""

from __future__ import annotations

from typing import Any


def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Any = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return by how much the distance to the positive comes too near that to the negative."""
    import torch

    measure = (
        torch.nn.functional.pairwise_distance if distance_function is None else distance_function
    )
    near, far = measure(anchor, positive), measure(anchor, negative)
    if swap:
        far = torch.minimum(far, measure(positive, negative))
    loss = torch.clamp_min(margin + near - far, 0)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """Return the products of vectors along an axis."""
    return (x.conj() * y).sum(dim)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return the diagonals of matrices."""
    import torch

    return torch.diagonal(A, offset, dim1, dim2)


def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """Return differences of neighbours over their distance, a tensor for each axis."""
    import torch

    if edge_order != 1:
        raise NotImplementedError("torch.gradient: expected edge_order=1")
    if dim is None:
        places = list(range(input.dim()))
    else:
        places = [dim] if isinstance(dim, int) else list(dim)
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(places)
    found = []
    for place, step in zip(places, steps, strict=True):
        size = input.size(place)
        inner = input.narrow(place, 2, size - 2) - input.narrow(place, 0, size - 2)
        first = input.narrow(place, 1, 1) - input.narrow(place, 0, 1)
        last = input.narrow(place, size - 1, 1) - input.narrow(place, size - 2, 1)
        found.append(torch.cat([first / step, inner / (2 * step), last / step], place))
    return tuple(found)


def unravel_index(indices: Any, shape: Any) -> Any:
    """Return flat places as coordinates."""
    import torch

    found = []
    inner = 1
    for size in reversed(list(shape)):
        found.append(torch.div(indices, inner, rounding_mode="floor") % size)
        inner = inner * size
    return tuple(reversed(found))


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Return images resized to the nearest elements."""
    import torch

    return torch.nn.functional.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Return images blended from four elements, corners on corners."""
    import torch

    return torch.nn.functional.interpolate(
        input, size, scale_factor, mode="bilinear", align_corners=True
    )


def stack_module_state(models: Any) -> Any:
    """Return the parameters and the buffers of modules of one form, each of them stacked."""
    import torch

    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    params = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return (
        {name: torch.stack([one[name] for one in params]) for name in params[0]},
        {name: torch.stack([one[name] for one in buffers]) for name in buffers[0]},
    )


def custom_op(
    name: str, fn: Any = None, *, mutates_args: Any, device_types: Any = None,
    schema: Any = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Return a function as an operator of its own, whose forms for other uses are kept apart."""

    def registered(function: Any, /) -> Any:
        def register(given: Any = None, /, *_: Any, **__: Any) -> Any:
            return (lambda one: one) if given is None or isinstance(given, str) else given

        function.register_fake = function.register_autograd = register
        function.register_kernel = function.register_vmap = register
        return function

    return registered if fn is None else registered(fn)


def spawn(
    fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> None:  # fmt: skip
    """Call a function once for each process."""
    for rank in range(nprocs):
        fn(rank, *args)
