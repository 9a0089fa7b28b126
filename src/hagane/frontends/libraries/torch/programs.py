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

    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"expected reduction to be one of none, mean, sum, got {reduction!r}")
    if margin <= 0:
        raise ValueError(f"expected a margin greater than 0, got {margin}")
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


def gradient(input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """Return differences of neighbours over their distance, a tensor for each axis.

    At both ends, of one neighbour, or of the two next to it where ``edge_order`` is 2.
    """
    import torch

    if dim is None:
        places = list(range(input.dim()))
    else:
        places = [dim] if isinstance(dim, int) else list(dim)
    if edge_order not in (1, 2):
        raise RuntimeError(f"expected 1 or 2 as edge_order, got {edge_order}")
    if len({place % max(input.dim(), 1) for place in places}) < len(places):
        raise RuntimeError(f"dim={dim} names an axis twice")
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(places)
    found = []
    for place, step in zip(places, steps, strict=True):
        size = input.size(place)
        first, second = input.narrow(place, 0, 1), input.narrow(place, 1, 1)
        last, before = input.narrow(place, size - 1, 1), input.narrow(place, size - 2, 1)
        low, own = input.narrow(place, 0, size - 2), input.narrow(place, 1, size - 2)
        high = input.narrow(place, 2, size - 2)
        if isinstance(step, torch.Tensor) and step.dim() > 0:  # coordinates
            wide = [1] * input.dim()
            wide[place] = -1
            left, right = (step[1:-1] - step[:-2]).view(wide), (step[2:] - step[1:-1]).view(wide)
            inner = left * left * high + (right * right - left * left) * own - right * right * low
            inner = inner / (left * right * (left + right))
            begin, end = step[1] - step[0], step[-1] - step[-2]
        else:
            begin = end = 1 if step is None else step
            inner = (high - low) / (2 * begin)
        if edge_order == 1:
            head, tail = (second - first) / begin, (last - before) / end
        else:
            if isinstance(step, torch.Tensor) and step.dim() > 0:
                next_one, next_last = step[2] - step[1], step[-2] - step[-3]
            else:
                next_one = next_last = begin
            head = (second - first) / begin * (1 + begin / (begin + next_one)) - (
                input.narrow(place, 2, 1) - second
            ) / next_one * (begin / (begin + next_one))
            tail = (last - before) / end * (1 + end / (end + next_last)) - (
                before - input.narrow(place, size - 3, 1)
            ) / next_last * (end / (end + next_last))
        found.append(torch.cat([head, inner, tail], place))
    return tuple(found)


def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:  # fmt: skip
    """Return the cross entropy of a linear layer's results (C,) or (C, d1, ..., dK) a sample."""
    import torch

    places = list(linear_weight.shape[1:-1])
    if places and input.dim() < 2:
        raise RuntimeError(
            f"expected a batch (N, {linear_weight.shape[-1]}) for weights of shape "
            f"{tuple(linear_weight.shape)}, got {tuple(input.shape)}"
        )
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("expected no ignore_index where targets are probabilities")
    flat = linear_weight.flatten(0, -2)
    bias = linear_bias if linear_bias is None else linear_bias.flatten()
    logits = torch.nn.functional.linear(input, flat, bias)
    if places:
        logits = logits.unflatten(-1, [linear_weight.shape[0], *places])
    ignored = -100 if ignore_index is None else ignore_index
    return torch.nn.functional.cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip


def adaptive_log_softmax(self: Any, input_: Any, target_: Any) -> Any:
    """Return output and loss of ``nn.AdaptiveLogSoftmaxWithLoss`` of any number of rows a cluster.

    (In its source, places of one row are a scalar.)
    """
    import torch

    alone = target_.dim() == 0
    if not alone and (target_.dim() != 1 or input_.dim() != 2 or len(input_) != len(target_)):
        raise RuntimeError(
            "expected inputs (N, in_features) and targets (N,), or (in_features,) and (), got "
            f"{tuple(input_.shape)} and {tuple(target_.shape)}"
        )
    given = input_.unsqueeze(0) if alone else input_
    target = target_.unsqueeze(0) if alone else target_
    if bool(((target < 0) | (target >= self.n_classes)).any()):
        raise RuntimeError(f"expected target values in [0, {self.n_classes - 1}]")
    output = given.new_zeros(target.size(0))
    inner = target.clone()
    ends = [0, *self.cutoffs]
    for place in range(1, len(ends) - 1):
        low, high = ends[place], ends[place + 1]
        rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
        if rows.numel() == 0:
            continue
        found = self.tail[place - 1](given.index_select(0, rows)).log_softmax(1)
        own = target.index_select(0, rows) - low
        output = output.index_copy(0, rows, found.gather(1, own.unsqueeze(1)).squeeze(1))
        inner = inner.index_fill(0, rows, self.shortlist_size + place - 1)
    first = torch.nn.functional.log_softmax(self.head(given), dim=1)
    output = output + first.gather(1, inner.unsqueeze(1)).squeeze(1)
    loss = (-output).mean()
    return output.squeeze(0) if alone else output, loss


def unravel_index(indices: Any, shape: Any) -> Any:
    """Return flat places as coordinates."""
    import torch

    found = []
    inner = 1
    indices = indices.to(torch.int64)
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


def suppressed(boxes: Any, scores: Any, threshold: Any) -> Any:
    """Return the places of the boxes that no better one overlaps, in the precision of the boxes.

    ONNX's NonMaxSuppression is of float32 alone.
    https://docs.pytorch.org/vision/stable/generated/torchvision.ops.nms.html
    """
    import torch

    order = scores.argsort(descending=True, stable=True)
    ranked = boxes[order]
    areas = (ranked[:, 2] - ranked[:, 0]) * (ranked[:, 3] - ranked[:, 1])
    low = torch.maximum(ranked[:, None, :2], ranked[None, :, :2])
    high = torch.minimum(ranked[:, None, 2:], ranked[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(2)
    overlap = shared / (areas[:, None] + areas[None, :] - shared) > threshold
    behind = torch.ones_like(overlap).triu(1)
    kept = torch.ones_like(order, dtype=torch.bool)
    for place in range(boxes.shape[0]):
        kept = kept & ~(overlap[place] & behind[place] & kept[place])
    return order[kept]
