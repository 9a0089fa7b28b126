"""Loss functions of PyTorch."""

from __future__ import annotations

from hagane.frontends.libraries.torch.functions.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    INT64,
    category,
    need_float,
    need_tensor,
    promoted,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.graph.types import Shape


def reduction_shape(reduction: Value, shape: Shape) -> Shape:
    """Return the shape of a loss."""
    return shape if reduction == "none" else ()


def _elementwise(name: str, *, strict: bool, weights: bool) -> None:
    def function(
        t: Core, input: Value, target: Value, *arguments: Value, reduction: Value = "mean",
        weight: Value = None, pos_weight: Value = None, size_average: Value = None,
        reduce: Value = None, **_: Value,
    ) -> Tensor:  # fmt: skip
        x, y = need_tensor(t, input, "input"), need_tensor(t, target, "target")
        weight = arguments[0] if arguments and weights else weight
        reduction = next((a for a in arguments if isinstance(a, str)), reduction)
        if strict:
            _same_shape(t, name, x, y)
            need_float(t, y, "target")
        need_reduction(t, reduction, ("batchmean",) if name == "kl_div" else ())
        dtype = promoted(x.dtype, y.dtype)
        shape = broadcast_shape(t, x, y)
        for other, what in ((weight, "weight"), (pos_weight, "pos_weight")):
            if isinstance(other, Tensor):
                _fits(t, other, x, what)
        return t.emit.typed(name, [x, y], dtype, reduction_shape(reduction, shape))

    TORCH.function(f"nn.functional.{name}")(function)


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


for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "soft_margin_loss",
              "poisson_nll_loss", "hinge_embedding_loss"):  # fmt: skip
    _elementwise(_name, strict=False, weights=False)
for _name in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
    _elementwise(_name, strict=True, weights=True)


@TORCH.function("nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    t: Core, input: Value, target: Value, weight: Value = None, size_average: Value = None,
    reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the loss of labels that do not exclude each other: one number a sample."""
    x, y = need_tensor(t, input, "input"), need_tensor(t, target, "target")
    shape = broadcast_shape(t, x, y)
    return t.emit.typed("Loss", [x, y], x.dtype, reduction_shape(reduction, shape[:-1]))


@TORCH.function("nn.functional.cross_entropy", "nn.functional.nll_loss")
def cross_entropy(
    t: Core, input: Value, target: Value, weight: Value = None, size_average: Value = None,
    ignore_index: Value = -100, reduce: Value = None, reduction: Value = "mean",
    label_smoothing: Value = 0.0,
) -> Tensor:  # fmt: skip
    """Return the loss of logits (batch, classes, ...) against classes (batch, ...)."""
    x, y = need_tensor(t, input, "input"), need_tensor(t, target, "target")
    need_float(t, x, "input")
    a, b = shape_of(t, x), shape_of(t, y)
    if not a:
        t.fail("rank", f"expected logits (batch, classes, ...), got {t.show(x)}", x)
    if len(a) == len(b) and category(y.dtype) == 2:
        _same_shape(t, "cross_entropy", x, y)
        expected = (*a[:1], *a[2:]) if len(a) > 1 else ()
        return t.emit.typed(
            "SoftmaxCrossEntropyLoss", [x, y], x.dtype, reduction_shape(reduction, expected)
        )
    expected = (a[0], *a[2:]) if len(a) > 1 else ()
    if len(b) != len(expected) or any(
        t.emit.differ(i, j) for i, j in zip(b, expected, strict=True)
    ):
        t.fail(
            "shape-mismatch",
            f"expected a target of shape {_text(expected)} for logits {t.show(x)}, got {t.show(y)}",
            x,
            y,
            remedy=_class_remedy(a, b),
        )
    if y.dtype != INT64 and y.dtype.name != "UINT8":
        t.fail(
            "dtype-mismatch", f"expected classes as int64, got {t.show(y)}", y,
            remedy="convert it with .long()",
        )  # fmt: skip
    if isinstance(weight, Tensor) and t.emit.differ(
        shape_of(t, weight, 1)[0], a[1 if len(a) > 1 else 0]
    ):
        t.fail("shape-mismatch", f"expected one weight a class, got {t.show(weight)}", weight)
    return t.emit.typed(
        "SoftmaxCrossEntropyLoss", [x, y], x.dtype, reduction_shape(reduction, expected)
    )


def _text(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


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
    return t.emit.typed("CTCLoss", [x], x.dtype, reduction_shape(reduction, (batch,)))


@TORCH.function("nn.functional.margin_ranking_loss")
def ranking_loss(
    t: Core, input1: Value, input2: Value, target: Value, margin: Value = 0.0, *_: Value,
    reduction: Value = "mean", **__: Value,
) -> Tensor:  # fmt: skip
    """Return a ranking loss of two inputs against +1 and -1."""
    shape = broadcast_shape(t, input1, input2, target)
    return t.emit.typed("Loss", [input1, input2], input1.dtype, reduction_shape(reduction, shape))


@TORCH.function("nn.functional.cosine_embedding_loss")
def cosine_embedding_loss(
    t: Core, input1: Value, input2: Value, target: Value, margin: Value = 0.0,
    size_average: Value = None, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the loss of the cosine of vectors against +1 and -1, one number a pair."""
    shape = broadcast_shape(t, input1, input2)
    if len(shape) not in (1, 2) or len(shape_of(t, target)) != len(shape) - 1:
        t.fail("rank", f"expected (batch, features) and targets (batch,), got {t.show(input1)} "
               f"and {t.show(target)}", input1, target)  # fmt: skip
    pairs = broadcast_shape(t, t.emit.new(input1.dtype, shape[:-1]), target)
    return t.emit.typed("Loss", [input1, input2], input1.dtype, reduction_shape(reduction, pairs))


@TORCH.function("nn.functional.gaussian_nll_loss")
def gaussian_nll_loss(
    t: Core, input: Value, target: Value, var: Value, full: Value = False, eps: Value = 1e-6,
    reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the negative log-likelihood of normal distributions."""
    tensors = [x for x in (input, target, var) if isinstance(x, Tensor)]
    shape = broadcast_shape(t, *tensors)
    return t.emit.typed("Loss", tensors, input.dtype, reduction_shape(reduction, shape))


@TORCH.function("nn.functional.triplet_margin_loss")
def triplet_margin_loss(
    t: Core,
    anchor: Value,
    positive: Value,
    negative: Value,
    *_: Value,
    reduction: Value = "mean",
    **__: Value,
) -> Tensor:
    """Return a loss of three inputs."""
    shape = broadcast_shape(t, anchor, positive, negative)
    return t.emit.typed(
        "Loss", [anchor, positive], anchor.dtype, reduction_shape(reduction, shape[:-1])
    )


@TORCH.function("nn.functional.multi_margin_loss", "nn.functional.multilabel_margin_loss")
def multi_margin_loss(
    t: Core, input: Value, target: Value, *_: Value, reduction: Value = "mean", **__: Value
) -> Tensor:
    """Return a margin loss of (batch, classes) against classes."""
    return t.emit.typed(
        "Loss", [input], input.dtype, reduction_shape(reduction, shape_of(t, input)[:1])
    )
