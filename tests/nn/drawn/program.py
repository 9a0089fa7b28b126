"""Whole programs: a model with Python's control flow, an optimizer, and some steps of training."""

from __future__ import annotations

import random

from tests.nn.drawn import elements, layers, shapes
from tests.nn.drawn.text import Text, Value
from tests.nn.drawn.training import training

PRELUDE = '''\
import chainer
import chainer.function_hooks
import chainer.functions as F
import chainer.link_hooks
import chainer.links as L
import copy
import io
import os
import tempfile
import warnings

import numpy as np


def drawn(seed, shape, low, high):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(DTYPE)


def mask(x):
    return x.array > 0


class Pair(chainer.Function):
    """Two results, by an old-style function."""

    def forward(self, inputs):
        a, b = inputs
        return a * b, a - b

    def backward(self, inputs, grads):
        a, b = inputs
        g, h = (0 * a if one is None else one for one in grads)
        return g * b + h, g * a - h


class Cube(chainer.FunctionNode):
    """One retained input; differentiable twice."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, indexes, grads):
        (x,) = self.get_retained_inputs()
        return (3 * x * x * grads[0],)


class Twice(chainer.FunctionNode):
    """Two results of which one is retained."""

    def forward(self, inputs):
        a, b = inputs
        self.retain_inputs((1,))
        self.retain_outputs((0,))
        return np.tanh(a), b * b

    def backward(self, indexes, grads):
        (y,) = self.get_retained_outputs()
        (b,) = self.get_retained_inputs()
        g, h = grads
        return (None if g is None else g * (1 - y * y), None if h is None else 2 * h * b)


class Block(chainer.Chain):
    """Two links, one of which is in a list."""

    def __init__(self, units, out):
        super().__init__(first=L.Linear(units, 3))
        with self.init_scope():
            self.more = chainer.ChainList(L.Linear(3, out), L.Linear(units, out, nobias=True))
            self.gain = chainer.Parameter(1.0, (out,))

    def __call__(self, x):
        y = self.more[0](F.tanh(self.first(x))) + self.more[1](x)
        return y * F.broadcast_to(self.gain, y.shape)


class Counted(chainer.Link):
    """A parameter, and persistent values that calls change."""

    def __init__(self, units):
        super().__init__()
        with self.init_scope():
            self.w = chainer.Parameter(chainer.initializers.Normal(0.5), (units,))
        self.add_persistent("seen", 0)
        self.total = np.zeros(units, DTYPE)
        self.register_persistent("total")

    def forward(self, x):
        if chainer.config.train:
            self.seen += 1
            self.total += x.array.mean(axis=0)
        return x * F.broadcast_to(self.w, x.shape)

'''

RULES = (*elements.RULES, *shapes.RULES, *layers.RULES)


def _grow(t: Text, count: int) -> None:
    """Write some lines."""
    for _ in range(count):
        x = t.pick()
        if x is None or not x.shape:
            continue
        _nested(t) if t.random.random() < 0.08 and not t.indent else t.random.choice(RULES)(t, x)


def _nested(t: Text) -> None:
    """Write a branch or a loop over lines, which changes one value."""
    x = t.pick()
    if x is None or not x.shape:
        return
    held = f"v{t.number()}"
    t.line(f"{held} = {x.name}")
    condition = f"({x.name}.array ** 2).sum() > {t.random.choice([0, 1.37, 5.91])}"
    head = t.random.choice([f"for i in range({t.random.randrange(1, 4)}):", f"if {condition}:"])
    if t.smooth:
        head = "for i in range(2):"
    with t.block(head):
        t.values = [*t.values, Value(held, x.shape)]
        inner = Value(held, x.shape)
        for _ in range(t.random.randrange(1, 4)):
            t.random.choice((elements.element, elements.pair, elements.axis_kept))(t, inner)
            inner = t.values[-1] if t.values[-1].shape == x.shape else inner
        t.line(f"{held} = {inner.name}")
    if head.startswith("if") and t.random.random() < 0.5:
        with t.block("else:"):
            t.line(f"{held} = {held} * 0.5")
    t.values.append(Value(held, x.shape))


def _classified(t: Text, x: Value) -> str:
    """Return a loss of rows against labels, or of arrays against an array."""
    n, classes = x.shape
    labels = [t.random.randrange(-1, classes) for _ in range(n)]
    if max(labels) < 0:
        labels[0] = 0
    y, v = t.array(x.shape), x.name
    signs = [[t.random.randrange(2) for _ in range(classes)] for _ in range(n)]
    weights = t.array((classes,), 0.5, 2)
    choices = [
        f"F.softmax_cross_entropy({v}, np.array({labels}, 'i'))",
        f"F.softmax_cross_entropy({v}, np.array({labels}, 'i'), normalize=False,"
        " enable_double_backprop=True)",
        f"F.softmax_cross_entropy({v}, np.array({labels}, 'i'), class_weight={weights},"
        " enable_double_backprop=True)",
        f"F.sum(F.softmax_cross_entropy({v}, np.array({labels}, 'i'), reduce='no'))",
        f"F.sigmoid_cross_entropy({v}, np.array({signs}, 'i'))",
        f"F.mean_squared_error({v}, {y})",
        f"F.gaussian_nll({v}, {y}, F.tanh({v}))",
        f"F.gaussian_kl_divergence({v}, F.tanh({v}))",
        f"F.bernoulli_nll(F.sigmoid({y}), {v})",
        f"F.cross_covariance({v}, {y})" if n > 1 else f"F.sum({v})",
        f"F.sum(F.batch_l2_norm_squared({v}))",
        f"F.decov({v})",
    ]
    if not t.smooth:
        # Not Chainer's hinge, whose second way back has other signs than its first.
        choices += [
            f"F.mean_absolute_error({v}, {y})",
            f"F.sum(F.huber_loss({v}, {y}, 0.5))",
            f"F.triplet({v}, {y}, {t.array(x.shape)})",
            f"F.contrastive({v}, {y}, np.array({[row[0] for row in signs]}, 'i'))",
            f"{t.link(f'L.CRF1d({classes})')}([{v}], [np.array({[0] * n}, 'i')])",
            f"{t.link(f'L.NegativeSampling({classes}, [2, 1, 3], 2)')}({v},"
            f" np.array({[abs(one) % 3 for one in labels]}, 'i'))",
            f"{t.link(f'L.BlackOut({classes}, [2, 1, 3], 2)')}({v},"
            f" np.array({[abs(one) % 3 for one in labels]}, 'i'))",
        ]
    return t.random.choice(choices)


def _objective(t: Text) -> None:
    """Write the loss: a sum over some of the values."""
    terms = []
    rows = [one for one in t.values if len(one.shape) == 2 and min(one.shape) > 1]
    if rows:
        terms.append(_classified(t, rows[-1]))
    for x in t.random.sample(t.values, min(3, len(t.values))) + t.values[-1:]:
        terms.append(t.random.choice([
            f"F.mean(F.tanh({x.name}))", f"0.1 * F.sum(F.square(F.sin(F.tanh({x.name}))))",
            f"F.average(F.sigmoid({x.name}))", f"0.3 * F.sum({x.name} / (1 + {x.name} ** 2))",
        ]))  # fmt: skip
    t.line(f"loss = {' + '.join(terms)}")


def model(t: Text) -> str:
    """Return the text of a model; ``forward(x, ids)`` returns a loss."""
    shape = t.random.choice([(4, 3), (5, 2), (3, 4), (4, 2, 5, 4), (3, 1, 4, 4), (3, 2, 4), (6,)])
    t.values.append(Value("x", shape))
    if t.random.random() < 0.3:
        name = t.link(f"L.EmbedID(5, {t.random.randrange(2, 5)})")
        t.let(f"{name}(ids)", (4, int(t.made[-1].split(", ")[1][:-1])))
    _grow(t, t.random.randrange(3, 9))
    if t.random.random() < 0.25 and not t.smooth:
        cut = t.pick()
        assert cut is not None
        if cut.name != "x":
            t.line("if self.cut:")
            t.line(f"    {cut.name}.unchain()")
    _grow(t, t.random.randrange(2, 6))
    _objective(t)
    seen = [one.name for one in t.values if one.name != "x"][:6]
    made = "".join(f"            self.{line}\n" for line in t.made)
    body = "".join(f"        {line}\n" for line in t.lines)
    return (
        f"\nclass Model(chainer.Chain):\n"
        f"    cut = False\n\n"
        f"    def __init__(self):\n"
        f"        super().__init__()\n"
        f"        with self.init_scope():\n"
        f"            self.last = chainer.Parameter(0.5, ())\n{made}"
        f"        self.offset = drawn(1, {shape}, -0.1, 0.1)\n"
        f"        self.register_persistent('offset')\n\n"
        f"    def forward(self, x, ids):\n"
        f"        for link in self.links():\n"
        f"            if hasattr(link, 'reset_state'):\n"
        f"                link.reset_state()\n"
        f"        x = chainer.as_variable(x) + self.offset\n{body}"
        f"        self.values = [{', '.join(seen)}]\n"
        f"        loss = loss * self.last\n"
        f"        chainer.report({{'loss': loss}}, self)\n"
        f"        return loss\n\n\n"
        f"SHAPE = {shape}\n"
    )


def write(seed: int, smooth: bool = False) -> str:
    """Return the program of a seed: it calls ``note(name, value)`` with all that it computes.

    Args:
        seed: Of all choices.
        smooth: Whether functions with kinks, random numbers and training are left out.
    """
    source = random.Random(seed)
    t = Text(source, smooth)
    dtype = "float32" if source.random() < 0.15 and not smooth else "float64"
    head = f"DTYPE = np.dtype({dtype!r})\nchainer.config.dtype = DTYPE\nnp.random.seed({seed})\n"
    body = PRELUDE + head + model(t)
    return body if smooth else body + training(source)
