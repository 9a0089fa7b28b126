"""Losses and measures of Chainer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.chainer import programs
from hagane.frontends.libraries.chainer.arithmetic import binary
from hagane.frontends.libraries.chainer.operands import (
    INT32,
    computed,
    computed_parts,
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
from hagane.frontends.libraries.chainer.table import VARIABLE, function
from hagane.frontends.libraries.numpy.operands import DOUBLE, INT64
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.printing import show_dims
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Unknown,
    Value,
)
from hagane.graph.types import Shape
from hagane.ops.functions.chainer import losses as functions


def check_reduce(t: Core, reduce: Value, options: tuple[str, ...]) -> None:
    """Fail unless ``reduce`` is one of the options."""
    check_option(t, "reduce", reduce, options)


def check_option(t: Core, name: str, value: Value, options: tuple[str, ...]) -> None:
    """Fail unless a setting is one of the texts that it may be."""
    if (value is None or isinstance(value, str | int | float)) and value not in options:
        t.fail("value", f"expected {name} to be one of {', '.join(options)}, got {value!r}")


def positive_margin(t: Core, margin: Value) -> float:
    """Return a margin, which has to be known and greater than zero."""
    found = number(t, margin, "margin")
    if not found > 0:
        t.fail("value", f"expected a margin greater than 0, got {margin}")
    return found


def loss_of(
    t: Core, dtype: ir.DataType, shape: Shape, reduce: Value, run: Callable[..., Any],
    *operands: Any,
) -> Tensor:  # fmt: skip
    """Return the loss that a function makes of operands: one number, or one for each place."""
    return computed(t, (dtype, shape if reduce == "no" else ()), run, *operands)


def unknown_loss(t: Core, inputs: list[Tensor], shape: Shape, reduce: Value) -> Tensor:
    """Return a loss whose values no operators compute."""
    return made(t, "Loss", inputs, inputs[0].dtype, shape if reduce == "no" else ())


def number(t: Core, value: Value, name: str) -> float:
    """Return a setting, which has to be a number that is known."""
    if not isinstance(value, int | float):
        t.fail("value", f"expected '{name}' to be a number, got {t.show(t.wrap(value))}")
    return float(value)


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
        own = (*shape[:1], *shape[2:])
        kind = soft_target_loss
        return loss_of(t, found.dtype, own, reduce, functions.soft_cross_entropy, found, labels,
                       reduce, kind)  # fmt: skip
    if len(shape) < 2:
        t.fail("rank", f"expected scores (batch, classes, ...), got {t.show(found)}", found)
    expected = (shape[0], *shape[2:])
    if len(own) != len(expected) or any(
        t.emit.differ(a, b) for a, b in zip(own, expected, strict=True)
    ):
        t.fail(
            "shape-mismatch",
            f"expected classes of shape {show_dims(expected)} for the scores {t.show(found)}, got "
            f"{t.show(labels)}",
            found,
            labels,
            remedy=_class_remedy(shape, own),
        )
    if isinstance(class_weight, Tensor) and t.emit.differ(
        need_rank(t, class_weight, 1, "class_weight")[0], shape[1]
    ):
        t.fail("shape-mismatch", f"expected one weight a class, got {t.show(class_weight)}", found)
    return loss_of(t, found.dtype, own, reduce, functions.softmax_cross_entropy, found, labels,
                   class_weight, ignore_label, reduce, bool(normalize))  # fmt: skip


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
    return loss_of(t, found.dtype, shape_of(t, found), reduce, functions.sigmoid_cross_entropy,
                   found, labels, bool(normalize), reduce)  # fmt: skip


def _pairwise(name: str, reduce: str, loss: Callable[..., Any]) -> None:
    def run(t: Core, x0: Value, x1: Value) -> Tensor:
        a, b = floating(t, x0, "x0"), floating(t, x1, "x1")
        same_dtype(t, a, b, "x0 and x1")
        same_shape(t, a, b, "x0 and x1")
        return loss_of(t, a.dtype, shape_of(t, a), reduce, loss, a, b, reduce)

    function(name)(run)


_pairwise("mean_squared_error", "mean", functions.squared_error)
_pairwise("mean_absolute_error", "mean", functions.absolute_error)
_pairwise("squared_error", "no", functions.squared_error)
_pairwise("absolute_error", "no", functions.absolute_error)


@function("huber_loss")
def huber_loss(
    t: Core, x: Value, t_: Value, delta: Value, reduce: Value = "sum_along_second_axis"
) -> Tensor:
    """Return the Huber loss, summed along axis 1 or element by element."""
    check_reduce(t, reduce, ("sum_along_second_axis", "no"))
    a, b = floating(t, x), floating(t, t_, "t")
    same_dtype(t, a, b, "x and t")
    same_shape(t, a, b, "x and t")
    shape = shape_of(t, a)
    own = shape if reduce == "no" else (shape[0], *shape[2:])
    bound = number(t, delta, "delta")
    return computed(t, (a.dtype, own), functions.huber, a, b, bound, reduce)


@function("hinge")
def hinge(t: Core, x: Value, t_: Value, norm: Value = "L1", reduce: Value = "mean") -> Tensor:
    """Return the hinge loss of (batch, classes) against classes."""
    check_reduce(t, reduce, ("mean", "no"))
    check_option(t, "norm", norm, ("L1", "L2"))
    found, labels = floating(t, x), variable(t, t_, "t")
    shape, own = need_rank(t, found, 2, "x"), need_rank(t, labels, 1, "t")
    if kind_of(labels) != "i":
        t.fail("dtype-mismatch", f"expected integers as 't', got {t.show(labels)}", labels)
    if t.emit.differ(shape[0], own[0]):
        t.fail("shape-mismatch", f"{t.show(labels)} does not label {t.show(found)}", found, labels)
    return loss_of(t, found.dtype, shape, reduce, functions.hinge, found, labels, norm, reduce)


@function("bernoulli_nll")
def bernoulli_nll(t: Core, x: Value, y: Value, reduce: Value = "sum") -> Tensor:
    """Return the negative log-likelihood of a Bernoulli distribution."""
    check_reduce(t, reduce, ("sum", "mean", "no"))
    a, b = variable(t, x), floating(t, y, "y")
    shape = shape_of(t, binary(t, "mul", a, b))
    return loss_of(t, b.dtype, shape, reduce, functions.bernoulli_nll, a, b, reduce)


@function("gaussian_kl_divergence")
def gaussian_kl_divergence(t: Core, mean: Value, ln_var: Value, reduce: Value = "sum") -> Tensor:
    """Return the divergence from the standard normal distribution."""
    check_reduce(t, reduce, ("sum", "mean", "no"))
    a, b = floating(t, mean, "mean"), floating(t, ln_var, "ln_var")
    shape = shape_of(t, binary(t, "add", a, b))
    return loss_of(t, a.dtype, shape, reduce, functions.gaussian_kl_divergence, a, b, reduce)


@function("gaussian_nll")
def gaussian_nll(t: Core, x: Value, mean: Value, ln_var: Value, reduce: Value = "sum") -> Tensor:
    """Return the negative log-likelihood of a normal distribution."""
    check_reduce(t, reduce, ("sum", "mean", "no"))
    a, m, v = variable(t, x), floating(t, mean, "mean"), floating(t, ln_var, "ln_var")
    shape = shape_of(t, binary(t, "mul", binary(t, "sub", a, m), v))
    return loss_of(t, a.dtype, shape, reduce, functions.gaussian_nll, a, m, v, reduce)


@function("contrastive")
def contrastive(
    t: Core, x0: Value, x1: Value, y: Value, margin: Value = 1, reduce: Value = "mean"
) -> Tensor:
    """Return a loss of pairs (batch, features) that are alike or not."""
    check_reduce(t, reduce, ("mean", "no"))
    a, b = floating(t, x0, "x0"), floating(t, x1, "x1")
    same_shape(t, a, b, "x0 and x1")
    alike, far = variable(t, y, "y"), positive_margin(t, margin)
    return loss_of(t, a.dtype, need_rank(t, a, 2, "x0")[:1], reduce, functions.contrastive, a, b,
                   alike, far, reduce)  # fmt: skip


@function("triplet")
def triplet(t: Core, anchor: Value, positive: Value, negative: Value, margin: Value = 0.2,
            reduce: Value = "mean") -> Tensor:  # fmt: skip
    """Return a loss of triples (batch, features)."""
    check_reduce(t, reduce, ("mean", "no"))
    found = [floating(t, v, "anchor") for v in (anchor, positive, negative)]
    for other in found[1:]:
        same_shape(t, found[0], other, "anchor, positive and negative")
    shape = shape_of(t, found[0])
    if len(shape) < 2:
        t.fail("rank", f"expected (batch, features, ...), got {t.show(found[0])}", found[0])
    shape = (shape[0], *shape[2:])
    return loss_of(t, found[0].dtype, shape, reduce, functions.triplet, *found,
                   positive_margin(t, margin), reduce)  # fmt: skip


@function("connectionist_temporal_classification")
def connectionist_temporal_classification(
    t: Core, x: Value, t_: Value, blank_symbol: Value, input_length: Value = None,
    label_length: Value = None, reduce: Value = "mean",
) -> Tensor:  # fmt: skip
    """Return the loss of a list of scores (batch, classes), one a time step."""
    first = variable(t, x.element, "x") if isinstance(x, Many) else variables(t, x, "x")[0]
    labels = variable(t, t_, "t")
    shape = need_rank(t, first, 2, "x")
    if t.emit.differ(shape[0], need_rank(t, labels, 2, "t")[0]):
        t.fail("shape-mismatch", f"{t.show(labels)} does not label {t.show(first)}", first, labels)
    check_reduce(t, reduce, ("mean", "no"))
    if not t.emit.builds or isinstance(x, Many):
        return unknown_loss(t, [first], shape[:1], reduce)
    # The recursion is that of PyTorch's function.
    scores = t.call_library("chainer.functions.stack", [list(x)])
    logs = t.call_library("chainer.functions.log_softmax", [scores], {"axis": 2})
    lengths: list[Value] = []
    for given, whole in ((input_length, len(x)), (label_length, shape_of(t, labels)[1])):
        if given is None:
            lengths.append(t.call_library("torch.full", [(shape[0],), whole]))
        else:
            lengths.append(variable(t, given, "length").seen_as("torch.Tensor"))
    scored = variable(t, logs, "x").seen_as("torch.Tensor")
    found = t.call_library(
        "torch.nn.functional.ctc_loss", [scored, labels.seen_as("torch.Tensor"), *lengths],
        {"blank": blank_symbol, "reduction": "none"},
    )  # fmt: skip
    assert isinstance(found, Tensor)
    loss = found.seen_as(VARIABLE)
    return (
        variable(t, t.call_library("chainer.functions.mean", [loss])) if reduce == "mean" else loss
    )


def _chain(t: Core, cost: Value, xs: Value) -> tuple[Tensor, list[Tensor]]:
    """Return the costs of pairs of labels, and of labels at each time; one stands for many."""
    pairs = floating(t, cost, "cost")
    size = need_rank(t, pairs, 2, "cost")[1]
    steps = [variable(t, xs.element, "xs")] if isinstance(xs, Many) else variables(t, xs, "xs")
    for i, x in enumerate(steps):
        if t.emit.differ(need_rank(t, x, 2, f"xs[{i}]")[1], size):
            t.fail("shape-mismatch", f"{t.show(x)} has not the labels of {t.show(pairs)}", x, pairs)
    return pairs, steps


@function("crf1d")
def crf1d(t: Core, cost: Value, xs: Value, ys: Value, reduce: Value = "mean") -> Tensor:
    """Return the loss of chains of labels, one a sample of the first time."""
    check_reduce(t, reduce, ("mean", "no"))
    pairs, steps = _chain(t, cost, xs)
    if t.emit.builds and not isinstance(xs, Many):
        labels = t.wrap([variable(t, y, "ys") for y in ys])
        found = run_own(t, programs.crf1d, [pairs, t.wrap(steps), labels, reduce], {})
        return variable(t, found, "loss")
    return unknown_loss(t, [pairs, *steps], shape_of(t, steps[0])[:1], reduce)


@function("argmax_crf1d")
def argmax_crf1d(t: Core, cost: Value, xs: Value) -> Value:
    """Return the best scores of chains, and their labels at each time."""
    pairs, steps = _chain(t, cost, xs)
    if t.emit.builds and not isinstance(xs, Many):
        return run_own(t, programs.argmax_crf1d, [pairs, t.wrap(steps)], {})
    score = made(t, "Score", [pairs, *steps], steps[0].dtype, shape_of(t, steps[0])[:1])
    path = [made(t, "Label", [x], INT32, shape_of(t, x)[:1]) for x in steps]
    return (score, Many(path[0], xs.length) if isinstance(xs, Many) else path)


@function("cross_covariance")
def cross_covariance(t: Core, y: Value, z: Value, reduce: Value = "half_squared_sum") -> Tensor:
    """Return a measure of how two sets of features vary together."""
    check_reduce(t, reduce, ("half_squared_sum", "no"))
    a, b = floating(t, y, "y"), floating(t, z, "z")
    shape = (need_rank(t, a, 2, "y")[1], need_rank(t, b, 2, "z")[1])
    return loss_of(t, a.dtype, shape, reduce, functions.cross_covariance, a, b, reduce)


@function("decov")
def decov(t: Core, h: Value, reduce: Value = "half_squared_sum") -> Tensor:
    """Return a measure of how features vary together."""
    check_reduce(t, reduce, ("half_squared_sum", "no"))
    x = floating(t, h, "h")
    count = need_rank(t, x, 2, "h")[1]
    return loss_of(t, x.dtype, (count, count), reduce, functions.decov, x, reduce)


@function("negative_sampling")
def negative_sampling(
    t: Core, x: Value, t_: Value, W: Value, sampler: Value, sample_size: Value,
    reduce: Value = "sum", *, samples: Value = None, return_samples: Value = False,
) -> Value:  # fmt: skip
    """Return a loss with sampled negative classes, and the samples where they are asked for."""
    check_reduce(t, reduce, ("sum", "no"))
    found, labels = floating(t, x), variable(t, t_, "t")
    loss = unknown_loss(t, [found, labels], shape_of(t, labels), reduce)
    if return_samples is False:
        return loss
    if return_samples is not True or not isinstance(sample_size, int):
        return Unknown("what negative_sampling returns beside the loss depends on its arguments")
    drawn = (*shape_of(t, labels), sample_size + 1)
    return (loss, made(t, "Sample", [labels], labels.dtype, drawn))


@function("black_out")
def black_out(
    t: Core, x: Value, t_: Value, W: Value, samples: Value, reduce: Value = "mean"
) -> Tensor:
    """Return a loss against sampled classes."""
    check_reduce(t, reduce, ("mean", "no"))
    found, labels = floating(t, x), variable(t, t_, "t")
    return unknown_loss(t, [found, labels], shape_of(t, labels), reduce)


def _classes(t: Core, value: Value) -> Tensor:
    labels = variable(t, value, "t")
    if kind_of(labels) != "i":
        t.fail("dtype-mismatch", f"expected classes as integers, got {t.show(labels)}", labels)
    return labels


@function("accuracy")
def accuracy(t: Core, y: Value, t_: Value, ignore_label: Value = None) -> Tensor:
    """Return how many of the highest scores (batch, classes, ...) are right."""
    found, labels = floating(t, y, "y"), _classes(t, t_)
    _label(t, found, labels)
    return computed(t, (found.dtype, ()), functions.accuracy, found, labels, ignore_label)


def _label(t: Core, found: Tensor, labels: Tensor) -> None:
    """Fail unless there is a class for each row of scores (batch, classes, ...)."""
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
            f"expected classes of shape {show_dims(expected)} for the scores {t.show(found)}, got "
            f"{t.show(labels)}",
            found,
            labels,
        )


@function("binary_accuracy")
def binary_accuracy(t: Core, y: Value, t_: Value) -> Tensor:
    """Return how many of the scores have the right sign."""
    found, labels = floating(t, y, "y"), _classes(t, t_)
    same_shape(t, found, labels, "y and t")
    return computed(t, (found.dtype, ()), functions.binary_accuracy, found, labels)


@function("r2_score")
def r2_score(
    t: Core, pred: Value, true: Value, sample_weight: Value = None,
    multioutput: Value = "uniform_average",
) -> Tensor:  # fmt: skip
    """Return the coefficient of determination."""
    check_option(t, "multioutput", multioutput, ("uniform_average", "raw_values"))
    if sample_weight is not None:
        t.fail("value", "sample_weight is not implemented in Chainer: expected None")
    a, b = floating(t, pred, "pred"), floating(t, true, "true")
    same_shape(t, a, b, "pred and true")
    average = multioutput == "uniform_average"
    shape = () if average else shape_of(t, a)[1:]
    return computed(t, (a.dtype, shape), functions.r2_score, a, b, average)


def _summary(t: Core, y: Value, t_: Value, count: Value, beta: Value, ignored: Value) -> Value:
    """Return precision, recall, F score and support of each class."""
    found, labels = floating(t, y, "y"), _classes(t, t_)
    _label(t, found, labels)
    number_of = shape_of(t, found)[1] if count is None else count
    promised = [(DOUBLE, (number_of,))] * 3 + [(INT64, (number_of,))]
    if not isinstance(count, int):  # the highest class that occurs decides it
        return tuple(made(t, "Score", [found], *one) for one in promised)
    score = number(t, beta, "beta")
    run = functions.class_summary
    return tuple(computed_parts(t, promised, run, found, labels, count, score, ignored))


def _measure(name: str, place: int) -> None:
    def run(
        t: Core, y: Value, t_: Value, label_num: Value = None, ignore_label: Value = -1
    ) -> Value:
        found = _summary(t, y, t_, label_num, 1.0, ignore_label)
        return (found[place], found[3])

    function(name)(run)


for _place, _name in enumerate(("precision", "recall", "f1_score")):
    _measure(_name, _place)


@function("classification_summary")
def classification_summary(
    t: Core, y: Value, t_: Value, label_num: Value = None, beta: Value = 1.0,
    ignore_label: Value = -1,
) -> Value:  # fmt: skip
    """Return precision, recall, F score and number of samples of each class."""
    return _summary(t, y, t_, label_num, beta, ignore_label)
