"""Loss functions of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    as_float,
    cast,
    category,
    computed,
    need_float,
    need_tensor,
    promote,
    promoted,
    real_dtype,
    same_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.printing import show_dims
from hagane.frontends.python.values.values import (
    Tensor,
    Value,
    is_size,
)
from hagane.graph.types import Shape
from hagane.ops.builder import interpreting, op
from hagane.ops.functions.layers import alignment, losses
from hagane.ops.functions.numbers.elementary import div
from hagane.symbolic import Dim, Expr, definitely_equal


def reduction_shape(reduction: Value, shape: Shape) -> Shape:
    """Return the shape of a loss."""
    return shape if reduction == "none" else ()


# Their mean is over the sum of the weights, that of other losses over the number of elements.
_MEAN_OF_WEIGHTS = ("mse_loss", "l1_loss")
# Arguments after input and target, in PyTorch's order; ``size_average`` and ``reduce`` are old
# forms of ``reduction``.
_OLD = {"size_average": None, "reduce": None, "reduction": "mean"}


def reduction_of(given: Mapping[str, Value]) -> Value:
    """Return the reduction that arguments ask for; the two old ones go before it."""
    average, reduce = given.get("size_average"), given.get("reduce")
    if average is None and reduce is None:
        return given["reduction"]
    if reduce is False:
        return "none"
    return "sum" if average is False else "mean"


def _arguments(
    t: Core, name: str, expected: Mapping[str, Value], given: Sequence[Value],
    keywords: Mapping[str, Value],
) -> dict[str, Value]:  # fmt: skip
    """Return the values of arguments by name."""
    unknown = next((key for key in keywords if key not in expected), None)
    if unknown is not None or len(given) > len(expected):
        told = f"an argument '{unknown}'" if unknown else f"{len(given) + 2} arguments"
        t.fail("value", f"{name} takes input, target, {', '.join(expected)}; got {told}")
    return {**expected, **dict(zip(expected, given, strict=False)), **keywords}


def _elementwise(
    name: str,
    expected: Mapping[str, Value],
    loss: Callable[[Any, Any, Mapping[str, Value]], Any],
    *,
    strict: bool = False,
) -> None:
    def function(
        t: Core, input: Value, target: Value, *arguments: Value, **keywords: Value
    ) -> Tensor:
        given = _arguments(t, name, expected, arguments, keywords)
        reduction = reduction_of(given)
        x, y = need_tensor(t, input, "input"), need_tensor(t, target, "target")
        if strict:
            _same_shape(t, name, x, y)
            need_float(t, y, "target")
            if name == "binary_cross_entropy":
                same_dtype(t, x, y, "input and target")
        if name == "huber_loss" and isinstance(given["delta"], int | float) and given["delta"] <= 0:
            t.fail("value", f"expected a delta greater than 0, got {given['delta']}")
        need_reduction(t, reduction, ("batchmean",) if name == "kl_div" else ())
        dtype = promoted(x.dtype, y.dtype)
        if name == "poisson_nll_loss" and category(dtype) < 2:  # of exponentials and logarithms
            dtype = FLOAT
        shape = broadcast_shape(t, x, y)
        _no_pairs(t, name, x, y, shape)
        if name in _WARNED:
            _no_spread_column(t, name, x, y)
        weights = {k: w for k, w in given.items() if k.endswith("weight") and isinstance(w, Tensor)}
        for what, of in weights.items():
            _fits(t, of, x, what)
            if not strict and (one := shape_of(t, of)) != shape_of(t, x):
                t.fail("shape-mismatch", f"expected a weight of {t.show(x)}, got {list(one)}", x)
        # PyTorch computes this one in place in what the target gives.
        told = y.dtype if name == "binary_cross_entropy_with_logits" else dtype
        told = real_dtype(dtype) if name == "l1_loss" else told  # of distances
        typed = t.emit.typed(name, [x, y], told, reduction_shape(reduction, shape))
        if category(dtype) != 2:
            return typed
        x, y = cast(t, x, dtype), cast(t, y, dtype)
        if strict:  # in place, as what the target gives
            given = {**given, **{what: cast(t, of, dtype) for what, of in weights.items()}}

        def compute() -> Any:
            weight = given.get("weight")
            made = losses.weighted(loss(x, y, given), weight)
            made = made if told == dtype else op("Cast", made, to=told)
            if reduction == "mean" and weight is not None and name in _MEAN_OF_WEIGHTS:
                return div(losses.reduced(made, "sum"), losses.reduced(weight, "sum"))
            return losses.reduced(made, str(reduction))

        return computed(t, typed, compute)

    TORCH.function(f"nn.functional.{name}")(function)


def _told(t: Core, name: str) -> str:
    """Return the name of a loss for a message, where the call does not say it."""
    return "" if t.emit.label.rpartition(".")[2] == name else f"{name}: "


def _no_pairs(t: Core, name: str, x: Tensor, y: Tensor, shape: Sequence[Dim]) -> None:
    """Refuse an input and a target that broadcast to more elements than either has.

    Likewise (n,) and (n, n), of which the latter is the square of a column and a row.
    """
    row, other = sorted((shape_of(t, x), shape_of(t, y)), key=len)
    is_square = (
        len(row) == 1
        and len(other) == 2
        and row[0] != 1
        and all(definitely_equal(row[0], size) for size in other)
    )
    for own in (row, other):
        if not is_square and len(own) == len(shape) and all(map(definitely_equal, own, shape)):
            return
    t.fail(
        "broadcast",
        f"{_told(t, name)}input {t.show(x)} and target {t.show(y)} broadcast to "
        f"({', '.join(map(str, shape))}): every element is compared with others",
        x,
        y,
        remedy="give both one shape, as with .squeeze(-1) or .view_as(input)",
    )


# Losses of which PyTorch warns where input and target differ in shape.
_WARNED = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


def _no_spread_column(t: Core, name: str, x: Tensor, y: Tensor) -> None:
    """Refuse (n, k) against (n, 1): each row's only number is compared with all of the other's."""
    one, two = shape_of(t, x), shape_of(t, y)
    if len(one) != 2 or len(two) != 2 or one[0] == 1 or not definitely_equal(one[0], two[0]):
        return
    narrow, wide = sorted((one[1], two[1]), key=lambda size: size != 1)
    if narrow == 1 and isinstance(wide, int) and wide > 1:
        t.fail(
            "broadcast",
            f"{_told(t, name)}input {t.show(x)} and target {t.show(y)}: the one column is compared "
            "with each of the others, of which PyTorch warns",
            x,
            y,
            remedy="give both one shape; where that is meant, say so with .expand_as()",
        )


def _fits(t: Core, weight: Tensor, x: Tensor, what: str) -> None:
    if broadcast_shape(t, x, weight) != x.shape:
        t.fail("shape-mismatch", f"expected '{what}' to broadcast to {t.show(x)}, got "
               f"{t.show(weight)}", x, weight)  # fmt: skip


def need_reduction(t: Core, reduction: Value, more: tuple[str, ...] = ()) -> None:
    """Fail unless a reduction is one that losses know."""
    known = ("none", "mean", "sum", *more)
    if reduction not in known:
        t.fail("value", f"expected reduction to be one of {', '.join(known)}, got {reduction!r}")


def _same_shape(t: Core, name: str, x: Tensor, y: Tensor) -> None:
    a, b = shape_of(t, x), shape_of(t, y)
    if len(a) != len(b) or any(t.emit.differ(i, j) for i, j in zip(a, b, strict=True)):
        t.fail(
            "shape-mismatch",
            f"{name} expects input and target of one shape, got {t.show(x)} and {t.show(y)}",
            x,
            y,
        )


_elementwise("mse_loss", {**_OLD, "weight": None}, lambda x, y, _: losses.squared_error(x, y))
_elementwise("l1_loss", {**_OLD, "weight": None}, lambda x, y, _: losses.absolute_error(x, y))
_elementwise("smooth_l1_loss", {**_OLD, "beta": 1.0},
             lambda x, y, given: losses.smooth_l1(x, y, given["beta"]))  # fmt: skip
_elementwise("huber_loss", {"reduction": "mean", "delta": 1.0, "weight": None},
             lambda x, y, given: losses.huber(x, y, given["delta"]))  # fmt: skip
_elementwise("kl_div", {**_OLD, "log_target": False},
             lambda x, y, given: losses.divergence(x, y, given["log_target"]))  # fmt: skip
_elementwise("soft_margin_loss", _OLD, lambda x, y, _: losses.soft_margin(x, y))
_elementwise(
    "poisson_nll_loss",
    {"log_input": True, "full": False, "size_average": None, "eps": 1e-8, "reduce": None,
     "reduction": "mean"},
    lambda x, y, given: losses.poisson(x, y, given["log_input"], given["full"], given["eps"]),
)  # fmt: skip
_elementwise("hinge_embedding_loss", {"margin": 1.0, **_OLD},
             lambda x, y, given: losses.hinge_embedding(x, y, given["margin"]))  # fmt: skip
_elementwise("binary_cross_entropy", {"weight": None, **_OLD},
             lambda x, y, _: losses.binary_cross_entropy(x, y), strict=True)  # fmt: skip
_elementwise(
    "binary_cross_entropy_with_logits",
    {"weight": None, **_OLD, "pos_weight": None},
    lambda x, y, given: losses.binary_cross_entropy_with_logits(x, y, given["pos_weight"]),
    strict=True,
)


@TORCH.function("nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    t: Core, input: Value, target: Value, weight: Value = None, size_average: Value = None,
    reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the loss of labels that do not exclude each other: one number a sample."""
    x, y = need_tensor(t, input, "input"), need_tensor(t, target, "target")
    shape = broadcast_shape(t, x, y)
    reduction = _wanted(t, size_average, reduce, reduction)
    made = t.emit.typed("Loss", [x, y], x.dtype, reduction_shape(reduction, shape[:-1]))
    return computed(t, made, lambda: losses.reduced(
        losses.multilabel_soft_margin(x, cast(t, y, x.dtype), weight), reduction))  # fmt: skip


def _wanted(t: Core, average: Value, reduce: Value, reduction: Value) -> str:
    """Return the reduction that arguments ask for, checked."""
    found = reduction_of({"size_average": average, "reduce": reduce, "reduction": reduction})
    need_reduction(t, found)
    return str(found)


@TORCH.function("nn.functional.cross_entropy")
def cross_entropy(
    t: Core, input: Value, target: Value, weight: Value = None, size_average: Value = None,
    ignore_index: Value = -100, reduce: Value = None, reduction: Value = "mean",
    label_smoothing: Value = 0.0,
) -> Tensor:  # fmt: skip
    """Return the loss of logits (batch, classes, ...) against classes (batch, ...)."""
    x, y = need_tensor(t, input, "input"), need_tensor(t, target, "target")
    reduction = _wanted(t, size_average, reduce, reduction)
    a = _scores(t, x)
    if len(a) == len(shape_of(t, y)) and category(y.dtype) == 2:
        _same_shape(t, "cross_entropy", x, y)
        expected = (*a[:1], *a[2:]) if len(a) > 1 else ()
        made = t.emit.typed(
            "SoftmaxCrossEntropyLoss", [x, y], x.dtype, reduction_shape(reduction, expected)
        )
        return computed(t, made, lambda: losses.of_probabilities(
            x, cast(t, y, x.dtype), weight, reduction, label_smoothing))  # fmt: skip
    made, ignored = _of_classes(t, x, y, weight, reduction), _ignored(t, ignore_index)
    if label_smoothing:
        return computed(t, made, lambda: losses.smoothed(
            x, y, weight, ignored, reduction, label_smoothing))  # fmt: skip
    return computed(t, made, lambda: losses.of_classes(
        x, y, weight, ignored, reduction, logits=True))  # fmt: skip


@TORCH.function("nn.functional.nll_loss")
def nll_loss(
    t: Core, input: Value, target: Value, weight: Value = None, size_average: Value = None,
    ignore_index: Value = -100, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the loss of logarithms of probabilities against classes (batch, ...)."""
    x, y = need_tensor(t, input, "input"), need_tensor(t, target, "target")
    reduction = _wanted(t, size_average, reduce, reduction)
    _scores(t, x)
    made, ignored = _of_classes(t, x, y, weight, reduction), _ignored(t, ignore_index)
    return computed(t, made, lambda: losses.of_classes(
        x, y, weight, ignored, reduction, logits=False))  # fmt: skip


def _ignored(t: Core, number: Value) -> Value:
    """Return a class that costs nothing as a number; as a tensor where sizes or data tell it."""
    return t.emit.constant(number, INT64) if isinstance(number, Expr) else number


def _scores(t: Core, x: Tensor) -> tuple[Dim, ...]:
    """Return the shape of the scores of classes."""
    need_float(t, x, "input")
    shape = shape_of(t, x)
    if not shape:
        t.fail("rank", f"expected logits (batch, classes, ...), got {t.show(x)}", x)
    return shape


def _of_classes(t: Core, x: Tensor, y: Tensor, weight: Value, reduction: str) -> Tensor:
    """Return the type of a loss of scores against classes, which have to fit."""
    a, b = shape_of(t, x), shape_of(t, y)
    expected = (a[0], *a[2:]) if len(a) > 1 else ()
    if len(b) != len(expected) or any(
        t.emit.differ(i, j) for i, j in zip(b, expected, strict=True)
    ):
        t.fail(
            "shape-mismatch",
            f"expected a target of shape {show_dims(expected)} for logits {t.show(x)}, got "
            f"{t.show(y)}",
            x,
            y,
            remedy=_class_remedy(a, b),
        )
    if y.dtype != INT64 and y.dtype.name != "UINT8":
        t.fail(
            "dtype-mismatch", f"expected classes as int64, got {t.show(y)}", y,
            remedy="convert it with .long()",
        )  # fmt: skip
    classes = a[1 if len(a) > 1 else 0]
    if isinstance(weight, Tensor) and t.emit.differ(shape_of(t, weight, 1)[0], classes):
        t.fail(
            "shape-mismatch",
            f"expected one weight for each of the {classes} classes of {t.show(x)}, "
            f"got {t.show(weight)}",
            x, weight,
        )  # fmt: skip
    return t.emit.typed(
        "SoftmaxCrossEntropyLoss", [x, y], x.dtype, reduction_shape(reduction, expected)
    )


def _class_remedy(logits: Shape, target: Shape) -> str:
    if len(logits) == 3 and len(target) == 2 and logits[:2] == target:
        return "the classes belong in axis 1: logits.transpose(1, 2)"
    return ""


@TORCH.function("nn.functional.ctc_loss")
def ctc_loss(
    t: Core, log_probs: Value, targets: Value, input_lengths: Value, target_lengths: Value,
    blank: Value = 0, reduction: Value = "mean", zero_infinity: Value = False,
) -> Tensor:  # fmt: skip
    """Return the connectionist temporal classification loss of (time, batch, classes)."""
    need_reduction(t, reduction)
    x = need_tensor(t, log_probs, "log_probs")
    need_float(t, x, "log_probs")
    shape = shape_of(t, x)
    if len(shape) not in (2, 3):
        t.fail("rank", f"expected (time, batch, classes), got {t.show(x)}", x)
    batch = shape[1] if len(shape) == 3 else 1
    for lengths, name in ((input_lengths, "input_lengths"), (target_lengths, "target_lengths")):
        count = None
        if isinstance(lengths, Tensor) and lengths.shape is not None and len(lengths.shape) == 1:
            count = lengths.shape[0]
        elif isinstance(lengths, tuple | list):
            count = len(lengths)
        if count is not None and t.emit.differ(count, batch):
            t.fail("shape-mismatch", f"expected one of '{name}' a sample ({batch}), got {count}", x)
    made = (x.dtype, reduction_shape(reduction, (batch,) if len(shape) == 3 else ()))
    lengths_ = [_lengths(t, v) for v in (input_lengths, target_lengths)]
    given = lengths_[0] is not None and lengths_[1] is not None and isinstance(targets, Tensor)
    if not given or not isinstance(blank, int) or category(x.dtype) == 3:
        return t.emit.typed("CTCLoss", [x], *made)
    rows = len(shape_of(t, targets)) == 2 or len(shape) == 2

    def loss(x: Tensor, targets: Tensor, times: Tensor, counts: Tensor) -> Any:
        times, counts = (op("Reshape", op("Cast", v, to=INT64), [-1]) for v in (times, counts))
        x = op("Unsqueeze", x, [1]) if len(shape) == 2 else x
        labels = targets if rows else alignment.labels_by_row(targets, counts)
        labels = op("Unsqueeze", labels, [0]) if len(shape) == 2 and len(
            shape_of(t, targets)) == 1 else labels  # fmt: skip
        found = alignment.alignment_loss(
            x, labels, times, counts, blank, zero_infinity=bool(zero_infinity)
        )
        if reduction == "none" and len(shape) == 2:
            return op("Squeeze", found, [0])
        return alignment.reduced_alignment_loss(found, counts, reduction)

    return built(t, made, loss, x, targets, *lengths_)


def _lengths(t: Core, value: Value) -> Tensor | None:
    """Return lengths of sequences as a tensor; None where they cannot be one."""
    if isinstance(value, Tensor):
        return value
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not all(is_size(item) for item in items):
        return None
    with interpreting(t.emit):
        made: Tensor = op("Identity", items)
    return made


def _overflows(x: Tensor) -> bool:
    """Whether differences of integers leave their type, of which nobody wants the rest."""
    return category(x.dtype) < 2 and x.dtype.itemsize < 4


@TORCH.function("nn.functional.margin_ranking_loss")
def ranking_loss(
    t: Core, input1: Value, input2: Value, target: Value, margin: Value = 0.0,
    size_average: Value = None, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return a ranking loss of two inputs against +1 and -1."""
    reduction = _wanted(t, size_average, reduce, reduction)
    shape = broadcast_shape(t, input1, input2, target)
    given = promote(t, input1, input2, target)
    x, other, y = (as_float(t, one) for one in given)
    made = t.emit.typed("Loss", [input1, input2], x.dtype, reduction_shape(reduction, shape))
    if _overflows(given[0]) or made.dtype != x.dtype:
        return made
    return computed(t, made, lambda: losses.reduced(
        losses.margin_ranking(x, other, y, margin), reduction))  # fmt: skip


@TORCH.function("nn.functional.cosine_embedding_loss")
def cosine_embedding_loss(
    t: Core, input1: Value, input2: Value, target: Value, margin: Value = 0.0,
    size_average: Value = None, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the loss of the cosine of vectors against +1 and -1, one number a pair."""
    reduction = _wanted(t, size_average, reduce, reduction)
    shape = broadcast_shape(t, input1, input2)
    if len(shape) not in (1, 2) or len(shape_of(t, target)) != len(shape) - 1:
        t.fail("rank", f"expected (batch, features) and targets (batch,), got {t.show(input1)} "
               f"and {t.show(target)}", input1, target)  # fmt: skip
    pairs = broadcast_shape(t, t.emit.new(input1.dtype, shape[:-1]), target)
    x, other, y = (as_float(t, one) for one in promote(t, input1, input2, target))
    made = t.emit.typed("Loss", [input1, input2], x.dtype, reduction_shape(reduction, pairs))
    return computed(t, made, lambda: losses.reduced(
        losses.cosine_embedding(x, other, y, margin), reduction))  # fmt: skip


@TORCH.function("nn.functional.gaussian_nll_loss")
def gaussian_nll_loss(
    t: Core, input: Value, target: Value, var: Value, full: Value = False, eps: Value = 1e-6,
    reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the negative log-likelihood of normal distributions."""
    need_reduction(t, reduction)
    x, y, variance = promote(t, input, target, var)
    if variance.shape is not None and variance.shape == shape_of(t, x)[:-1]:
        variance = t.op("Unsqueeze", variance, np.array([len(variance.shape)]))
    shape = broadcast_shape(t, x, y, variance)
    made = t.emit.typed("Loss", [x, y], x.dtype, reduction_shape(reduction, shape))
    return computed(t, made, lambda: losses.reduced(
        losses.gaussian(x, y, variance, full, eps), str(reduction)))  # fmt: skip


@TORCH.function("nn.functional.triplet_margin_loss")
def triplet_margin_loss(
    t: Core, anchor: Value, positive: Value, negative: Value, margin: Value = 1.0, p: Value = 2,
    eps: Value = 1e-6, swap: Value = False, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return a loss of three inputs."""
    reduction = _wanted(t, size_average, reduce, reduction)
    if isinstance(margin, int | float) and margin <= 0:
        t.fail("value", f"expected a margin greater than 0, got {margin}")
    shape = broadcast_shape(t, anchor, positive, negative)
    given = promote(t, anchor, positive, negative)
    x, y, z = (as_float(t, one) for one in given)
    dtype, made_shape = real_dtype(x.dtype), reduction_shape(reduction, shape[:-1])
    made = t.emit.typed("Loss", [anchor, positive], dtype, made_shape)
    if _overflows(given[0]) or made.dtype != x.dtype:
        return made
    if not shape:  # numbers are their own only component
        x, y, z = (t.op("Unsqueeze", one, np.array([0], np.int64)) for one in (x, y, z))
    return computed(t, made, lambda: losses.reduced(
        losses.triplet_margin(x, y, z, margin, p, eps, bool(swap)), reduction))  # fmt: skip


@TORCH.function("nn.functional.multi_margin_loss")
def multi_margin_loss(
    t: Core, input: Value, target: Value, p: Value = 1, margin: Value = 1.0, weight: Value = None,
    size_average: Value = None, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return a margin loss of (batch, classes) against classes."""
    reduction = _wanted(t, size_average, reduce, reduction)
    shape = shape_of(t, input)
    if need_tensor(t, target, "target").dtype != INT64:
        t.fail("dtype-mismatch", f"expected int64 as target, got {t.show(target)}", target,
               remedy="convert it with .long()")  # fmt: skip
    if isinstance(p, int | float) and p not in (1, 2):
        t.fail("value", f"expected 1 or 2 as p, got {p}")
    made = t.emit.typed("Loss", [input], input.dtype, reduction_shape(reduction, shape[:-1]))
    if not shape:  # the score of a single class
        input = t.op("Unsqueeze", input, np.array([0], np.int64))
    if len(shape) < 2 and shape_of(t, target):  # one sample, whose class is in a vector
        target = t.op("Reshape", target, np.array([], np.int64))
    return computed(t, made, lambda: losses.reduced(
        losses.multi_margin(input, target, p, margin, weight), reduction))  # fmt: skip


@TORCH.function("nn.functional.multilabel_margin_loss")
def multilabel_margin_loss(
    t: Core, input: Value, target: Value, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return a margin loss of (batch, classes) against lists of classes that end at -1."""
    reduction = _wanted(t, size_average, reduce, reduction)
    x, y = need_tensor(t, input, "input"), need_tensor(t, target, "target")
    _same_shape(t, "multilabel_margin_loss", x, y)
    shape = shape_of(t, x)
    made = t.emit.typed("Loss", [x], x.dtype, reduction_shape(reduction, shape[:-1]))
    if not shape:  # the score of a single class
        x, y = (t.op("Unsqueeze", one, np.array([0], np.int64)) for one in (x, y))
    return computed(t, made, lambda: losses.reduced(
        losses.multilabel_margin(x, y), reduction))  # fmt: skip
