"""Losses and measures of Chainer."""

from __future__ import annotations

from hagane.frontends.libraries.chainer.arithmetic import binary
from hagane.frontends.libraries.chainer.operands import (
    floating,
    kind_of,
    made,
    need_rank,
    same_dtype,
    same_shape,
    shape_of,
    variable,
    variables,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Many, Tensor, Value
from hagane.graph.types import Shape


def check_reduce(t: Core, reduce: Value, options: tuple[str, ...]) -> None:
    """Fail unless ``reduce`` is one of the options."""
    if isinstance(reduce, str) and reduce not in options:
        t.fail("value", f"expected reduce to be one of {', '.join(options)}, got {reduce!r}")


def loss_of(t: Core, inputs: list[Tensor], shape: Shape, reduce: Value) -> Tensor:
    """Return a loss: one number, or one for each place."""
    return made(t, "Loss", inputs, inputs[0].dtype, shape if reduce == "no" else ())


def _text(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@function("softmax_cross_entropy")
def softmax_cross_entropy(
    t: Core, x: Value, t_: Value, normalize: Value = True, cache_score: Value = True,
    class_weight: Value = None, ignore_label: Value = -1, reduce: Value = "mean",
    enable_double_backprop: Value = False, soft_target_loss: Value = "cross-entropy",
) -> Tensor:  # fmt: skip
    """Return the loss of scores (batch, classes, ...) against classes (batch, ...)."""
    check_reduce(t, reduce, ("mean", "no"))
    found, labels = floating(t, x), variable(t, t_, "t")
    shape, own = shape_of(t, found), shape_of(t, labels)
    if kind_of(labels) != "i":
        if kind_of(labels) != "f":
            t.fail(
                "dtype-mismatch",
                f"expected classes as signed integers, got {t.show(labels)}",
                labels,
                remedy="convert them with .astype(np.int32)",
            )
        same_shape(t, found, labels, "scores and soft targets")
        return loss_of(t, [found, labels], (*shape[:1], *shape[2:]), reduce)
    if len(shape) < 2:
        t.fail("rank", f"expected scores (batch, classes, ...), got {t.show(found)}", found)
    expected = (shape[0], *shape[2:])
    if len(own) != len(expected) or any(
        t.emit.differ(a, b) for a, b in zip(own, expected, strict=True)
    ):
        t.fail(
            "shape-mismatch",
            f"expected classes of shape {_text(expected)} for the scores {t.show(found)}, got "
            f"{t.show(labels)}",
            found,
            labels,
            remedy=_class_remedy(shape, own),
        )
    if isinstance(class_weight, Tensor) and t.emit.differ(
        need_rank(t, class_weight, 1, "class_weight")[0], shape[1]
    ):
        t.fail("shape-mismatch", f"expected one weight a class, got {t.show(class_weight)}", found)
    return loss_of(t, [found, labels], own, reduce)


def _class_remedy(scores: Shape, classes: Shape) -> str:
    if len(scores) == 3 and len(classes) == 2 and scores[:2] == classes:
        return "the classes belong in axis 1: F.transpose(x, (0, 2, 1))"
    return ""


@function("sigmoid_cross_entropy")
def sigmoid_cross_entropy(
    t: Core, x: Value, t_: Value, normalize: Value = True, reduce: Value = "mean"
) -> Tensor:
    """Return the loss of scores against 0 and 1, of one shape."""
    check_reduce(t, reduce, ("mean", "no"))
    found, labels = floating(t, x), variable(t, t_, "t")
    if kind_of(labels) != "i":
        t.fail("dtype-mismatch", f"expected integers as 't', got {t.show(labels)}", labels)
    same_shape(t, found, labels, "x and t")
    return loss_of(t, [found, labels], shape_of(t, found), reduce)


def _pairwise(name: str, default: str) -> None:
    def run(t: Core, x0: Value, x1: Value, reduce: Value = default) -> Tensor:
        a, b = floating(t, x0, "x0"), floating(t, x1, "x1")
        same_dtype(t, a, b, "x0 and x1")
        same_shape(t, a, b, "x0 and x1")
        return loss_of(t, [a, b], shape_of(t, a), reduce)

    function(name)(run)


for _name, _default in (
    ("mean_squared_error", "mean"), ("mean_absolute_error", "mean"), ("squared_error", "no"),
    ("absolute_error", "no"),
):  # fmt: skip
    _pairwise(_name, _default)


@function("huber_loss")
def huber_loss(
    t: Core, x: Value, t_: Value, delta: Value, reduce: Value = "sum_along_second_axis"
) -> Tensor:
    """Return the Huber loss, summed along axis 1 or element by element."""
    a, b = floating(t, x), floating(t, t_, "t")
    same_dtype(t, a, b, "x and t")
    same_shape(t, a, b, "x and t")
    shape = shape_of(t, a)
    return made(t, "Loss", [a, b], a.dtype, shape if reduce == "no" else (shape[0], *shape[2:]))


@function("hinge")
def hinge(t: Core, x: Value, t_: Value, norm: Value = "L1", reduce: Value = "mean") -> Tensor:
    """Return the hinge loss of (batch, classes) against classes."""
    found, labels = floating(t, x), variable(t, t_, "t")
    shape, own = need_rank(t, found, 2, "x"), need_rank(t, labels, 1, "t")
    if kind_of(labels) != "i":
        t.fail("dtype-mismatch", f"expected integers as 't', got {t.show(labels)}", labels)
    if t.emit.differ(shape[0], own[0]):
        t.fail("shape-mismatch", f"{t.show(labels)} does not label {t.show(found)}", found, labels)
    return loss_of(t, [found, labels], shape, reduce)


@function("bernoulli_nll")
def bernoulli_nll(t: Core, x: Value, y: Value, reduce: Value = "sum") -> Tensor:
    """Return the negative log-likelihood of a Bernoulli distribution."""
    check_reduce(t, reduce, ("sum", "mean", "no"))
    a, b = variable(t, x), floating(t, y, "y")
    product_ = binary(t, "mul", a, b)
    return loss_of(t, [b, product_], shape_of(t, product_), reduce)


@function("gaussian_kl_divergence")
def gaussian_kl_divergence(t: Core, mean: Value, ln_var: Value, reduce: Value = "sum") -> Tensor:
    """Return the divergence from the standard normal distribution."""
    check_reduce(t, reduce, ("sum", "mean", "no"))
    a, b = floating(t, mean, "mean"), floating(t, ln_var, "ln_var")
    both = binary(t, "add", a, b)
    return loss_of(t, [both], shape_of(t, both), reduce)


@function("gaussian_nll")
def gaussian_nll(t: Core, x: Value, mean: Value, ln_var: Value, reduce: Value = "sum") -> Tensor:
    """Return the negative log-likelihood of a normal distribution."""
    check_reduce(t, reduce, ("sum", "mean", "no"))
    both = binary(t, "sub", variable(t, x), floating(t, mean, "mean"))
    both = binary(t, "mul", both, floating(t, ln_var, "ln_var"))
    return loss_of(t, [both], shape_of(t, both), reduce)


@function("contrastive")
def contrastive(
    t: Core, x0: Value, x1: Value, y: Value, margin: Value = 1, reduce: Value = "mean"
) -> Tensor:
    """Return a loss of pairs (batch, features) that are alike or not."""
    a, b = floating(t, x0, "x0"), floating(t, x1, "x1")
    same_shape(t, a, b, "x0 and x1")
    return loss_of(t, [a, b], need_rank(t, a, 2, "x0")[:1], reduce)


@function("triplet")
def triplet(t: Core, anchor: Value, positive: Value, negative: Value, margin: Value = 0.2,
            reduce: Value = "mean") -> Tensor:  # fmt: skip
    """Return a loss of triples (batch, features)."""
    found = [floating(t, v, "anchor") for v in (anchor, positive, negative)]
    for other in found[1:]:
        same_shape(t, found[0], other, "anchor, positive and negative")
    return loss_of(t, found, need_rank(t, found[0], 2, "anchor")[:1], reduce)


@function("connectionist_temporal_classification")
def connectionist_temporal_classification(
    t: Core, x: Value, t_: Value, blank_symbol: Value, input_length: Value = None,
    label_length: Value = None, reduce: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the loss of a list of scores (batch, classes), one a time step."""
    first = variable(t, x.element, "x") if isinstance(x, Many) else variables(t, x, "x")[0]
    labels = variable(t, t_, "t")
    shape = need_rank(t, first, 2, "x")
    if t.emit.differ(shape[0], shape_of(t, labels)[0]):
        t.fail("shape-mismatch", f"{t.show(labels)} does not label {t.show(first)}", first, labels)
    return loss_of(t, [first], shape[:1], reduce)


@function("crf1d", "argmax_crf1d")
def crf1d(t: Core, cost: Value, xs: Value, ys: Value = None, reduce: Value = "mean") -> Value:
    """Return the loss of a chain of labels."""
    return made(t, "Loss", [floating(t, cost, "cost")], floating(t, cost, "cost").dtype, ())


@function("cross_covariance", "decov")
def cross_covariance(
    t: Core, y: Value, z: Value = None, reduce: Value = "half_squared_sum"
) -> Tensor:
    """Return a measure of how features vary together."""
    a = floating(t, y, "y")
    b = a if z is None else floating(t, z, "z")
    shape = (need_rank(t, a, 2, "y")[1], need_rank(t, b, 2, "z")[1])
    return loss_of(t, [a, b], shape, reduce)


@function("negative_sampling", "black_out")
def negative_sampling(t: Core, x: Value, t_: Value, W: Value, *_: Value, reduce: Value = "sum",
                      **__: Value) -> Tensor:  # fmt: skip
    """Return a loss with sampled negative classes."""
    found, labels = floating(t, x), variable(t, t_, "t")
    return loss_of(t, [found, labels], shape_of(t, labels), reduce)


@function("accuracy")
def accuracy(t: Core, y: Value, t_: Value, ignore_label: Value = None) -> Tensor:
    """Return how many of the highest scores (batch, classes, ...) are right."""
    found, labels = floating(t, y, "y"), variable(t, t_, "t")
    if kind_of(labels) != "i":
        t.fail("dtype-mismatch", f"expected classes as integers, got {t.show(labels)}", labels)
    shape, own = shape_of(t, found), shape_of(t, labels)
    expected = (shape[0], *shape[2:]) if shape else ()
    if (
        not own
        or len(shape) < len(own)
        or any(t.emit.differ(a, b) for a, b in zip(own, expected, strict=False))
        or any(t.emit.differ(n, 1) for n in shape[len(own) + 1 :])
    ):
        t.fail(
            "shape-mismatch",
            f"expected classes of shape {_text(expected)} for the scores {t.show(found)}, got "
            f"{t.show(labels)}",
            found,
            labels,
        )
    return made(t, "Accuracy", [found, labels], found.dtype, ())


@function("binary_accuracy")
def binary_accuracy(t: Core, y: Value, t_: Value) -> Tensor:
    """Return how many of the scores have the right sign."""
    found, labels = floating(t, y, "y"), variable(t, t_, "t")
    same_shape(t, found, labels, "y and t")
    return made(t, "Accuracy", [found, labels], found.dtype, ())


@function("r2_score")
def r2_score(t: Core, pred: Value, true: Value, *_: Value, **__: Value) -> Tensor:
    """Return the coefficient of determination."""
    a, b = floating(t, pred, "pred"), floating(t, true, "true")
    same_shape(t, a, b, "pred and true")
    return made(t, "Score", [a, b], a.dtype, ())


@function("precision", "recall", "f1_score", "classification_summary")
def precision(
    t: Core, y: Value, t_: Value, label_num: Value = None, *_: Value, **__: Value
) -> Value:
    """Return measures of each class, and how often it occurs."""
    found = floating(t, y, "y")
    count = shape_of(t, found)[1] if label_num is None else label_num
    one = made(t, "Score", [found], found.dtype, (count,))
    from hagane.frontends.libraries.chainer.operands import INT32

    support = made(t, "Score", [found], INT32, (count,))
    if t.emit.label.endswith("summary"):
        return (one, one, one, support)
    return (one, support)
