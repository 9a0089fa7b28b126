"""Functions of single elements, of two arrays, and along axes."""

from __future__ import annotations

import math

from tests.nn.drawn.text import Text, Value

SMOOTH = """F.tanh({x}) | F.sigmoid({x}) | F.softplus({x}, beta=2.0) | F.sin({x}) | F.cos({x})
| F.arctan({x}) | F.exp(F.tanh({x})) | F.expm1(F.tanh({x})) | F.log1p(F.square({x}))
| F.square({x}) | F.sqrt(F.square({x}) + 1) | F.rsqrt(1 + F.square({x})) | F.erf({x})
| F.erfc({x}) | -{x} | {x} * 2 | 2 - {x} | {x} / 3 | 1 / (2 + {x} ** 2) | {x} ** 2 | {x} ** 3
| 1.5 ** F.tanh({x}) | +{x} | F.sinh(F.tanh({x})) | F.cosh(F.tanh({x}))
| F.arcsin(F.tanh({x}) * 0.8) | {x} - 0.25 | 0.5 + {x} | F.arccos(F.tanh({x}) * 0.8)
| F.arctanh(F.tanh({x}) * 0.8) | F.tan(F.tanh({x})) | F.identity({x}) | F.cast({x}, {x}.dtype)
| F.log(1.5 + F.cos({x})) | F.log2(2 + F.sin({x})) | F.log10(2 + F.sin({x}))
| F.lgamma(1.5 + F.square({x})) | F.digamma(1 + {x} * {x}) | F.ndtr({x}) | F.log_ndtr({x})
| F.ndtri(F.sigmoid({x})) | F.erfinv(0.8 * F.tanh({x}))
| F.polygamma(np.ones({x}.shape, 'i'), 1 + F.square({x})) | Cube().apply(({x},))[0]
| F.copy({x}, -1) | F.erfcx(F.tanh({x})) | F.erfcinv(1 + 0.8 * F.tanh({x}))
| {x} + np.float32(0.5) | {x} * {x}.dtype.type(2) | F.elu({x}, alpha=1.0)"""

KINKED = """F.relu({x}) | F.elu({x}, alpha=0.7) | F.selu({x}) | F.leaky_relu({x}, 0.1)
| abs({x}) | F.clipped_relu({x}, 1.5) | F.relu6({x}) | F.hard_sigmoid({x})
| F.clip({x}, -0.7, 0.9) | F.absolute({x}) | F.sqrt(F.absolute({x}) + 0.5)
| F.dropout({x}, 0.3) | F.rrelu({x}) | F.fix(3 * {x}) | F.floor(3 * {x}) | F.ceil(3 * {x})
| F.sign({x}) | F.dropout({x}, ratio=0.5) | {x} * (F.sign({x}) + 2)
| F.where({x}.array > 0, {x}, {x} * 0.1) | {x}.__matmul__({x}.T) * 0 + {x}
| F.gaussian({x}, {x} * 0.1) | F.forget(lambda a: F.tanh(a) * a, {x})"""

PAIRS = """{x} + {y} | {x} - {y} | {x} * {y} | {x} / (1.5 + {y} * {y}) | F.add({x}, {y}, {x})
| F.squared_difference({x}, {y}) | F.squared_error({x}, {y}) | F.arctan2({x}, 2 + F.sin({y}))
| F.linear_interpolate(F.sigmoid({x}), {y}, {x} + 1) | (1 + F.square({x})) ** F.tanh({y})
| Twice().apply(({x}, {y}))[0]"""

KINKED_PAIRS = """F.maximum({x}, {y}) | F.minimum({x}, {y}) | F.where(mask({x}), {x}, {y})
| Pair()({x}, {y})[0] | sum(Pair()({x}, {y})) | F.absolute_error({x}, {y})
| F.zoneout({x}, {y}, 0.4)"""


def _split(text: str) -> list[str]:
    return [one.strip() for one in text.replace("\n", " ").split(" | ")]


_TABLES = {True: (_split(SMOOTH), _split(PAIRS)), False: (_split(KINKED), _split(KINKED_PAIRS))}


def element(t: Text, x: Value) -> None:
    """Write a function of every element."""
    smooth = t.smooth or t.random.random() < 0.6
    text = t.random.choice(_TABLES[smooth][0])
    if "__matmul__" in text and (len(x.shape) != 2 or x.shape[0] != x.shape[1]):
        text = "F.relu({x})"
    t.let(text.format(x=x.name), x.shape)


def pair(t: Text, x: Value) -> None:
    """Write a function of two arrays of a shape."""
    smooth = t.smooth or t.random.random() < 0.7
    t.let(t.random.choice(_TABLES[smooth][1]).format(x=x.name, y=t.other(x.shape)), x.shape)


def broadcasting(t: Text, x: Value) -> None:
    """Write arithmetic of operands of different shapes."""
    shape = [n if t.random.random() < 0.5 else 1 for n in x.shape]
    if t.random.random() < 0.5:
        small = t.array(shape[t.random.randrange(2) :])
    else:
        axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
        small = f"F.mean({x.name}, {axes}, keepdims=True)" if axes else x.name
    t.let(f"{x.name} {t.random.choice('+-*')} {small}", x.shape)


def axis_kept(t: Text, x: Value) -> None:
    """Write a function along an axis whose result has the shape of its operand."""
    axis = t.random.randrange(-len(x.shape), len(x.shape))
    texts = [
        f"F.softmax({x.name}, axis={axis})",
        f"F.log_softmax({x.name}, axis={axis})",
        f"F.cumsum({x.name}, {axis})",
        f"F.cumprod(1 + 0.3 * F.tanh({x.name}), axis={axis})",
        f"F.normalize({x.name}, eps=1e-2, axis={axis % len(x.shape)})",
        f"F.flip({x.name}, {axis})",
        f"{x.name} - F.broadcast_to(F.mean({x.name}, {axis}, keepdims=True), {x.name}.shape)",
        f"{x.name} - F.max({x.name}, axis={axis}, keepdims=True)",
        f"{x.name} * F.mean(F.sigmoid(F.logsumexp({x.name}, axis={axis % len(x.shape)})))",
        f"F.concat(F.separate(F.expand_dims({x.name}, 0), 0) * 1, {axis})",
    ]
    if t.smooth:
        texts.pop(7)
    t.let(t.random.choice(texts), x.shape)


def reduced(t: Text, x: Value) -> None:
    """Write a reduction."""
    ndim = len(x.shape)
    axes = sorted(t.random.sample(range(ndim), t.random.randrange(1, ndim + 1)))
    keep = t.random.random() < 0.5
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
    signs = [i - ndim if t.random.random() < 0.3 else i for i in axes]
    axis = repr(signs[0] if len(axes) == 1 else tuple(signs))
    names = ["sum", "mean", "average", "prod"] + ["max", "min"] * (not t.smooth)
    name = t.random.choice(names)
    count = math.prod(x.shape[i] for i in axes)
    source = f"1 + F.tanh({x.name}) / {count}" if name == "prod" else x.name
    if name == "average" and len(axes) == 1 and t.random.random() < 0.5:
        weights = t.array((x.shape[axes[0]],), 0.2, 1)
        t.let(f"F.average({x.name}, {axis}, weights={weights}, keepdims={keep})", shape)
    elif t.random.random() < 0.2:
        shape = [n for i, n in enumerate(x.shape) if i not in axes]
        t.let(f"F.logsumexp({x.name}, axis={tuple(axes)})", shape)
    else:
        t.let(f"F.{name}({source}, axis={axis}, keepdims={keep})", shape)


RULES = (element, element, element, pair, pair, broadcasting, axis_kept, reduced)
