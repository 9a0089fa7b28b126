"""Resize: nearest, linear and cubic interpolation along any axes.

Interpolation is separable: each output coordinate of an axis is a weighted sum of a few input
coordinates of that axis, so the axes are treated one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, TypeAlias

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, content_of, dtype_of, op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import transpose
from hagane.ops.precision import widened
from hagane.ops.rules import ratio_of_sizes
from hagane.ops.traits import Trait
from hagane.symbolic import Dim, Expr, floor

Real: TypeAlias = type[np.floating[Any]]


def real_of(dtype: np.dtype[Any], mode: str) -> Real:
    """Return the type in which coordinates of elements are computed.

    ONNX has float32 for all; numbers interpolated in float64 would have its errors. Which element
    is the nearest does not depend on the type of the elements.
    """
    return np.float64 if dtype == np.float64 and mode != "nearest" else np.float32


@dataclass(frozen=True, slots=True)
class Axis:
    """How one axis is resized.

    Attributes:
        source: Input size.
        target: Output size.
        scale: Ratio of output to input, as given or implied.
        length: Output size before it is rounded down to whole elements.
        start: Where the region of interest begins, as a share of the input.
        end: Where it ends.
    """

    source: int
    target: int
    scale: float
    length: float
    start: float
    end: float


def coordinates(axis: Axis, transformation: str, kind: Real = np.float32) -> Array:
    """Return the input coordinate of every output coordinate, computed in a real type."""
    x = np.arange(axis.target, dtype=kind)
    scale, half = kind(axis.scale), kind(0.5)
    match transformation:
        case "half_pixel":
            return (x + half) / scale - half
        case "half_pixel_symmetric":
            adjustment = kind(axis.target) / kind(axis.length)
            offset = kind(axis.source) * half * (1 - adjustment)
            return offset + (x + half) / scale - half
        case "pytorch_half_pixel":
            return (x + half) / scale - half if axis.target > 1 else np.zeros_like(x)
        case "align_corners":
            if axis.length == 1:
                return np.zeros_like(x)
            return x * kind(axis.source - 1) / kind(axis.length - 1)
        case "asymmetric":
            return x / scale
        case "tf_half_pixel_for_nn":
            return (x + half) / scale
        case "tf_crop_and_resize":
            start, end = kind(axis.start), kind(axis.end)
            last = kind(axis.source - 1)
            if axis.target == 1:
                return np.full_like(x, half * (start + end) * last)
            return start * last + x * (end - start) * last / kind(axis.target - 1)
    raise ValueError(f"unknown coordinate_transformation_mode '{transformation}'")


def _nearest(x: Array, mode: str) -> Array:
    match mode:
        case "round_prefer_floor":
            return np.ceil(x - np.float32(0.5))
        case "round_prefer_ceil":
            return np.floor(x + np.float32(0.5))
        case "floor":
            return np.floor(x)
        case "ceil":
            return np.ceil(x)
    raise ValueError(f"unknown nearest_mode '{mode}'")


def _cubic(distance: Array, a: float) -> Array:
    """Return the cubic convolution kernel (Keys, 1981, equation 4)."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def taps(
    x: Array,
    axis: Axis,
    mode: str,
    cubic_coeff_a: float,
    antialias: bool,
    exclude_outside: bool,
) -> tuple[Array, Array]:
    """Return the input positions and weights of every output coordinate, (target, taps)."""
    reach = 1 if mode == "linear" else 2
    # Downscaling with antialiasing stretches the kernel over all inputs that an output covers.
    stretch = min(axis.scale, 1.0) if antialias else 1.0
    base = np.floor(x).astype(np.int64)
    first = -ceil(reach / stretch) + 1
    offsets = np.arange(first, 2 - first)
    positions = base[:, None] + offsets
    distance = (positions - x[:, None].astype(np.float64)) * stretch
    if mode == "linear":
        weights = np.clip(1 - np.abs(distance), 0, None)
    else:
        weights = _cubic(distance, cubic_coeff_a)
    if exclude_outside:
        weights = np.where((positions >= 0) & (positions < axis.source), weights, 0)
    if exclude_outside or antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(positions, 0, axis.source - 1), weights


def _blend(x: Array, axis: int, positions: Array, weights: Array) -> Array:
    result = None
    shape = [1] * x.ndim
    shape[axis] = -1
    for tap in range(positions.shape[1]):
        column = weights[:, tap]
        if not column.any():
            continue
        part = np.take(x, positions[:, tap], axis) * column.reshape(shape)
        result = part if result is None else result + part
    return np.zeros_like(x) if result is None else result


@widened
def _resize(
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Array:
    chosen = [a % x.ndim for a in (range(x.ndim) if axes is None else axes)]
    sources = [x.shape[a] for a in chosen]
    for name, values in (("scales", scales), ("sizes", sizes)):
        if values is not None and not _positive(name, sources, values, keep_aspect_ratio_policy):
            raise ValueError(f"expected positive {name}, got {values.ravel().tolist()}")
    plan = _plan(
        x.shape,
        chosen,
        roi,
        scales,
        sizes,
        keep_aspect_ratio_policy,
        coordinate_transformation_mode,
        kind := real_of(x.dtype, mode),
    )
    y = x if mode == "nearest" else x.astype(np.float64 if x.dtype == np.float64 else np.float32)
    outside: list[tuple[int, Array]] = []
    for where, axis in zip(chosen, plan, strict=True):
        if axis.source == axis.target and axis.scale == 1 and (axis.start, axis.end) == (0, 1):
            continue
        if axis.target == 0:  # a scale of 1e-9 would have its kernel cover a billion elements
            y = np.take(y, np.zeros(0, np.int64), where)
            continue
        at = coordinates(axis, coordinate_transformation_mode, kind)
        if coordinate_transformation_mode == "tf_crop_and_resize":
            outside.append((where, (at < 0) | (at > axis.source - 1)))
        if mode == "nearest":
            index = np.clip(_nearest(at, nearest_mode), 0, axis.source - 1).astype(np.int64)
            y = np.take(y, index, where)
        else:
            y = _blend(
                y,
                where,
                *taps(at, axis, mode, cubic_coeff_a, bool(antialias), bool(exclude_outside)),
            )
    y = _round_to(y, x.dtype)
    for where, mask in outside:
        place: list[Any] = [slice(None)] * y.ndim
        place[where] = mask
        y[tuple(place)] = extrapolation_value
    return y


def _positive(name: str, sources: Sequence[Dim], values: Array, policy: str) -> bool:
    """Whether all axes of elements get a positive scale, as far as numbers are known.

    Where the largest ratio is that of all axes (``not_smaller``), other sizes may be any.
    """
    pairs = zip(sources, values.ravel(), strict=False)
    known = [(a, float(v)) for a, v in pairs if not isinstance(v, Expr)]
    if name == "sizes" and policy == "not_smaller":
        return len(known) < values.size or any(a == 0 or v > 0 for a, v in known)
    return all(0 < v < float("inf") or (name == "sizes" and v == 0 and a == 0) for a, v in known)


def _round_to(y: Array, dtype: np.dtype[Any]) -> Array:
    if y.dtype == dtype:
        return y.copy()
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # Truncation after clipping: as ONNX's own reference does for integer pictures.
        return np.clip(y, limits.min, limits.max).astype(dtype)
    return y.astype(dtype)


def _plan(
    shape: Sequence[int],
    chosen: Sequence[int],
    roi: Array | None,
    scales: Array | None,
    sizes: Array | None,
    policy: str,
    transformation: str,
    kind: Real,
) -> list[Axis]:
    count = len(chosen)
    crop = transformation == "tf_crop_and_resize" and roi is not None and roi.size
    starts = [float(v) for v in roi[:count]] if crop else [0.0] * count  # type: ignore[index]
    ends = [float(v) for v in roi[count:]] if crop else [1.0] * count  # type: ignore[index]
    sources = [shape[a] for a in chosen]
    if sizes is not None and sizes.size:
        targets = [int(n) for n in sizes]
        if policy != "stretch":
            ratios = [t / s for t, s in zip(targets, sources, strict=True)]
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            targets = [int(np.floor(ratio * s + 0.5)) for s in sources]
            factors = [ratio] * count
        else:
            factors = [
                float(kind(t) / kind(s)) if s else 1.0
                for t, s in zip(targets, sources, strict=True)
            ]
        lengths = [float(t) for t in targets]
    elif scales is not None and scales.size:
        factors = [float(s) for s in scales]
        # Of the whole picture, whatever part of it is read: the specification's text differs, its
        # shape inference, its reference and ONNX Runtime do not.
        targets = [
            int(np.floor(np.float32(s) * np.float32(f)))
            for s, f in zip(sources, factors, strict=True)
        ]
        lengths = [f * s for f, s in zip(factors, sources, strict=True)]
    else:
        raise ValueError("expected scales or sizes")
    return [
        Axis(*fields)
        for fields in zip(sources, targets, factors, lengths, starts, ends, strict=True)
    ]


def _infer_resize(ctx: InferContext) -> Sequence[Any]:
    shape = list(ctx.shape(0))
    given = ctx.attr("axes")
    axes = [ctx.axis(a, len(shape)) for a in (range(len(shape)) if given is None else given)]
    by_size = ctx.has(3) and ctx.tensor(3).shape != (0,)
    by_scale = ctx.has(2) and ctx.tensor(2).shape != (0,)
    if by_size == by_scale:
        ctx.fail(f"expected either 'scales' or 'sizes', got {ctx.inputs_text()}")
    values = ctx.data(3 if by_size else 2)
    if values is None:
        for axis in axes:
            shape[axis] = ctx.fresh()
        return [tuple(shape)]
    if values.size != len(axes):
        ctx.fail(f"expected one number an axis ({len(axes)}), got {values.size}")
    policy = ctx.attr("keep_aspect_ratio_policy")
    name = "sizes" if by_size else "scales"
    if not _positive(name, [shape[axis] for axis in axes], values, policy):
        ctx.fail(f"expected positive {name}, got {values.ravel().tolist()}")
    for axis, value in zip(axes, values.ravel(), strict=True):
        if by_size:
            if policy == "stretch":
                shape[axis] = value if isinstance(value, Expr) else int(value)
            else:
                shape[axis] = ctx.fresh()
        else:
            scaled = _scaled(shape[axis], value)
            shape[axis] = ctx.fresh() if scaled is None else scaled
    if by_size and policy != "stretch":
        _keep_aspect(ctx, shape, axes, values, policy)
    return [tuple(shape)]


def _scaled(dim: Dim, scale: Any) -> Dim | None:
    """Return the size that comes of a scale, or None if only the run tells how it is rounded."""
    if isinstance(scale, Expr):
        return floor(dim * scale)
    if isinstance(dim, int):
        with np.errstate(over="ignore"):  # infinity is no size, and is refused as such
            return int(np.floor(np.float32(dim) * np.float32(scale)))
    try:
        return floor(dim * ratio_of_sizes(Fraction(float(scale))))
    except ValueError:
        return None


def _keep_aspect(
    ctx: InferContext, shape: list[Dim], axes: Sequence[int], sizes: Array, policy: str
) -> None:
    sources = [ctx.shape(0)[axis] for axis in axes]
    if sizes.dtype == object or not all(isinstance(dim, int) for dim in sources):
        return
    numbers = [int(dim) for dim in sources]
    ratios = [int(t) / s for t, s in zip(sizes, numbers, strict=True)]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    for axis, source in zip(axes, numbers, strict=True):
        shape[axis] = int(np.floor(ratio * source + 0.5))


def _resize_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Each axis is a matrix of weights; its transpose goes back."""
    _, *others = call.inputs

    def refuse() -> Any:
        raise NotDifferentiable("Resize has no gradient by its region, scales or sizes")

    return [lambda: _resized_back(call, gradients[0]), *(refuse for _ in others)]


def _resized_back(call: Call, g: Any) -> Any:
    x, _, scales = (*call.inputs, None, None)[:3]
    rank = rank_of(x)
    chosen = [a % rank for a in call.attr("axes") or range(rank)]
    factors = None if scales is None else content_of(scales)
    for number, where in enumerate(chosen):
        if shape_of(x)[where] == shape_of(g)[where] and _keeps(factors, number, call):
            continue
        times = _repeats(call, factors, number)
        if times is not None:
            shape: list[Any] = [*shape_of(g)]
            shape[where : where + 1] = [shape_of(x)[where], times]
            g = op("ReduceSum", op("Reshape", g, shape), [where + 1], keepdims=0)
            continue
        matrix = _axis_matrix(call, where, number, shape_of(g)[where])
        order = [*(i for i in range(rank) if i != where), where]
        product = op("MatMul", transpose(g, order), matrix)
        g = transpose(product, sorted(range(rank), key=lambda i: order[i]))
    return g


def _keeps(factors: Array | None, number: int, call: Call) -> bool:
    """Whether an axis of unchanged size has unchanged content."""
    crops = call.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    return not crops and (factors is None or not factors.size or factors.ravel()[number] == 1)


def _repeats(call: Call, factors: Array | None, number: int) -> int | None:
    """Return how often each element is repeated in a row, if that is all that happens."""
    transformation = call.attr("coordinate_transformation_mode")
    plain = call.attr("mode") == "nearest" and transformation in ("asymmetric", "half_pixel")
    if not plain or factors is None or factors.size <= number:
        return None
    times = float(factors.ravel()[number])
    if times != int(times) or times < 1:
        return None
    axis = Axis(4, 4 * int(times), times, 4 * times, 0, 1)
    at = _nearest(coordinates(axis, transformation), call.attr("nearest_mode"))
    same = np.array_equal(np.clip(at, 0, 3), np.repeat(np.arange(4), int(times)))
    return int(times) if same else None


def _axis_matrix(call: Call, where: int, number: int, target: Dim) -> Any:
    """Return the weights with which elements of an axis enter its resized form.

    Args:
        call: Of Resize.
        where: The axis of the data.
        number: Its place among the axes that are resized.
        target: The resized size.
    """
    x, *others = call.inputs
    known = [None if v is None else content_of(v) for v in others]
    shape = shape_of(x)
    chosen = [a % len(shape) for a in call.attr("axes") or range(len(shape))]
    policy = call.attr("keep_aspect_ratio_policy")
    stretched = policy in (None, "stretch")
    needed = [target, *(shape[a] for a in ([where] if stretched else chosen))]
    is_known = all(v is None or k is not None for v, k in zip(others, known, strict=True))
    if not is_known or not all(isinstance(dim, int) for dim in needed):
        if stretched:
            return _open_matrix(call, where, number, len(chosen))
        raise NotDifferentiable(
            f"Resize with keep_aspect_ratio_policy '{policy}' has no gradient along axes of "
            "unknown size: give the model's inputs sizes"
        )
    roi, scales, sizes = (*known, None, None)[:3]
    transformation, mode = call.attr("coordinate_transformation_mode"), call.attr("mode")
    # Stretched axes know nothing of each other: 1 stands for sizes that only a run knows.
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in shape)
    if sizes is not None:
        sizes = np.array([size if isinstance(size, int | np.integer) else 1 for size in sizes.flat])
    kind = real_of(dtype_of(x).numpy(), mode)
    axis = _plan(shape, chosen, roi, scales, sizes, policy, transformation, kind)[number]  # type: ignore[arg-type]
    at = coordinates(axis, transformation, kind)
    matrix = np.zeros((axis.target, axis.source))
    if mode == "nearest":
        index = np.clip(_nearest(at, call.attr("nearest_mode")), 0, axis.source - 1)
        matrix[np.arange(axis.target), index.astype(np.int64)] = 1
    else:
        flags = bool(call.attr("antialias")), bool(call.attr("exclude_outside"))
        positions, weights = taps(at, axis, mode, call.attr("cubic_coeff_a"), *flags)
        for tap in range(positions.shape[1]):
            np.add.at(matrix, (np.arange(axis.target), positions[:, tap]), weights[:, tap])
    if transformation == "tf_crop_and_resize":
        matrix[(at < 0) | (at > axis.source - 1)] = 0
    return matrix.astype(dtype_of(x).numpy())


def _open_matrix(call: Call, where: int, number: int, count: int) -> Any:
    """Return the weights of an axis whose sizes only a run knows: the identity, resized.

    Args:
        call: Of Resize, which stretches each axis by itself.
        where: The axis of the data.
        number: Its place among the axes that are resized.
        count: How many are.
    """
    x, roi, scales, sizes = (*call.inputs, None, None, None)[:4]
    size = shape_of(x)[where]
    zeros = op("ConstantOfShape", [size, size], value=np.zeros(1, dtype_of(x).numpy()))
    identity = op("Unsqueeze", op("EyeLike", zeros), [0, 1])
    attributes = {name: call.attr(name) for name in _OF_ONE_AXIS if call.attr(name) is not None}
    crops = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    resized = op(
        "Resize",
        identity,
        op("Gather", roi, [number, number + count]) if crops else None,
        None if scales is None or shape_of(scales) == (0,) else op("Gather", scales, [number]),
        None if sizes is None else op("Gather", sizes, [number]),
        axes=[2],
        **attributes,
    )
    return op("Squeeze", resized, [0, 1])


# What is outside of the data has no weight: their extrapolation value is left out.
_OF_ONE_AXIS = (
    "antialias",
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "mode",
    "nearest_mode",
)


OPERATORS = (OpDef("Resize", _infer_resize, _resize, traits=Trait.EXPANDING, vjp=_resize_vjp),)
