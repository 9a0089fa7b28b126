"""Small networks drawn from a seed: images, signals and texts whose sizes only a run knows.

Sizes are names (batch, height, width, length); a network is made of the blocks that published
ones are made of, in float32, float16 or float64, some with quantised layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.native.drawn_layers import Map, Network, attention
from tests.native.drawn_texts import text

Feed = dict[str, np.ndarray]


def _conv(g: Network, x: Map) -> Map:
    """A convolution of any kind that keeps the sizes, or halves them."""
    rank = g.rank
    kernel = [g.pick(1, 3, 3, 5, 2, 7) for _ in range(rank)] if g.chance(0.3) else [
        g.pick(1, 1, 3, 3, 5)
    ] * rank  # fmt: skip
    dilations = [g.pick(1, 1, 1, 2, 3)] * rank
    strides = [g.pick(1, 1, 1, 2)] * rank
    groups = [n for n in (1, 1, 1, 2, 4, x.channels) if x.channels % n == 0]
    group = int(g.pick(*groups))
    outs = group * g.whole(1, 4) if group > 1 else g.whole(1, 40)
    if group == x.channels and g.chance(0.6):
        outs = group
    w = g.byte_weight(outs, x.channels // group, *kernel)
    spans = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    begins = [n // 2 for n in spans]
    ends = [n - n // 2 for n in spans]
    source, pads = g.bytes(x.name), begins + ends
    if g.chance(0.2) and any(pads):
        before = np.array([0, 0, *begins, 0, 0, *ends])
        source = g.op("Pad", source, g.constant(before), mode=g.pick("constant", "edge"))
        pads = [0] * (2 * rank)
    inputs = [source, w]
    if g.chance(0.6):
        inputs.append(g.weight(outs))
    name = g.op("Conv", *inputs, kernel_shape=kernel, dilations=dilations, strides=strides,
                group=group, pads=pads)  # fmt: skip
    if g.chance(0.3):
        name = g.op("BatchNormalization", name, *(g.weight(outs) for _ in range(3)),
                    g.constant(g.random.random(outs) + 0.5, g.dtype))  # fmt: skip
    path = x.path if strides[0] == 1 else (*x.path, "half")
    return Map(g.act(name), outs, path)


def _residual(g: Network, x: Map, others: Sequence[Map]) -> Map:
    """A sum or a concatenation with an earlier value."""
    same = [o for o in others if o.path == x.path]
    if not same:
        return x
    other = g.pick(*same)
    if other.channels == x.channels and g.chance(0.7):
        joined = g.op(g.pick("Add", "Add", "Mul", "Sub", "Max"), x.name, other.name)
        return Map(joined, x.channels, x.path)
    names = [x.name, other.name]
    return Map(g.op("Concat", *names, axis=1), x.channels + other.channels, x.path)


def _squeeze(g: Network, x: Map) -> Map:
    """Squeeze and excitation."""
    axes = list(range(2, 2 + g.rank))
    if g.chance(0.5):
        mean = g.op("GlobalAveragePool", x.name)
    else:
        mean = g.op("ReduceMean", x.name, g.constant(np.array(axes)), keepdims=1)
    inner = max(1, x.channels // 4)
    a = g.op("Conv", mean, g.weight(inner, x.channels, *[1] * g.rank), g.weight(inner))
    b = g.op("Conv", g.op("Relu", a), g.weight(x.channels, inner, *[1] * g.rank))
    gate = g.op(g.pick("Sigmoid", "HardSigmoid"), b)
    return Map(g.op("Mul", x.name, gate), x.channels, x.path)


def _pool(g: Network, x: Map) -> Map:
    kind = g.pick("MaxPool", "AveragePool")
    size = g.pick(2, 3, 5)
    stride = g.pick(1, 2)
    form: dict[str, Any] = {"kernel_shape": [size] * g.rank, "strides": [stride] * g.rank}
    if size == 2:
        form["ceil_mode"] = 1
        form["strides"] = [2] * g.rank
        if kind == "AveragePool":
            form["count_include_pad"] = g.pick(0, 1)
        path = (*x.path, "half")
    else:
        form["pads"] = [size // 2] * (2 * g.rank)
        if kind == "AveragePool":
            form["count_include_pad"] = g.pick(0, 1)
        path = x.path if stride == 1 else (*x.path, "half")
    return Map(g.op(kind, g.bytes(x.name), **form), x.channels, path)


def _grow(g: Network, x: Map) -> Map:
    """Twice the size, by one of several ways."""
    if len([p for p in x.path if p == "twice"]) > 1:
        return x
    way = g.pick("resize", "transposed", "shuffle")
    if way == "transposed":
        outs = g.whole(1, 20)
        w = g.weight(x.channels, outs, *[2] * g.rank, fan=x.channels)
        name = g.op("ConvTranspose", x.name, w, strides=[2] * g.rank)
        return Map(g.act(name), outs, (*x.path, "twice"))
    if way == "shuffle" and g.rank == 2 and x.channels % 4 == 0:
        name = g.op("DepthToSpace", x.name, blocksize=2, mode=g.pick("DCR", "CRD"))
        return Map(name, x.channels // 4, (*x.path, "twice"))
    form = g.pick(
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
         "nearest_mode": "floor"},
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    )  # fmt: skip
    scales = g.constant([1, 1, *[2] * g.rank], "float32")
    return Map(g.op("Resize", x.name, "", scales, **form), x.channels, (*x.path, "twice"))


def _resized(g: Network, x: Map, others: Sequence[Map]) -> Map:
    """The size of an earlier value, taken from its shape."""
    other = g.pick(*others)
    if other.path == x.path:
        return x
    rest = g.op("Slice", g.op("Shape", other.name), *map(g.constant, ([2], [9])))
    sizes = g.op("Concat", g.size(x.name, 0), g.constant([x.channels]), rest, axis=0)
    form = g.pick(
        {"mode": "nearest"}, {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    )
    return Map(g.op("Resize", x.name, "", "", sizes, **form), x.channels, other.path)


def _normalize(g: Network, x: Map) -> Map:
    kind = g.pick("InstanceNormalization", "GroupNormalization", "batch", "LRN", "LpNorm")
    c = x.channels
    if kind == "GroupNormalization":
        groups = int(g.pick(*[n for n in (1, 2, 4, c) if c % n == 0]))
        name = g.op(kind, x.name, g.weight(c), g.weight(c), num_groups=groups, epsilon=0.01)
    elif kind == "batch":
        name = g.op("BatchNormalization", x.name, *(g.weight(c) for _ in range(3)),
                    g.constant(g.random.random(c) + 0.5, g.dtype))  # fmt: skip
    elif kind == "LRN":
        name = g.op("LRN", x.name, size=g.pick(3, 5)) if g.dtype == "float32" else x.name
    elif kind == "LpNorm":
        square = g.op("ReduceSumSquare", x.name, g.constant([1]), keepdims=1)
        root = g.op("Sqrt", g.op("Add", square, g.number(0.1)))
        name = g.op("Div", x.name, root)
    else:
        name = g.op(kind, x.name, g.weight(c), g.weight(c), epsilon=0.01)
    return Map(name, c, x.path)


def _halves(g: Network, x: Map) -> Map:
    """Channels in two parts, one of which is changed."""
    if x.channels < 2:
        return x
    first = g.whole(1, x.channels - 1)
    parts = g.constant([first, x.channels - first])
    a, b = g.op("Split", x.name, parts, count=2, axis=1)
    if first * 2 == x.channels and g.chance(0.5):
        return Map(g.op("Mul", a, g.op(g.pick("Sigmoid", "Tanh"), b)), first, x.path)
    changed = _conv(g, Map(a, first, x.path)) if g.chance(0.5) else Map(g.act(a), first, x.path)
    if changed.path != x.path:
        return changed
    order = [changed.name, b] if g.chance(0.5) else [b, changed.name]
    return Map(g.op("Concat", *order, axis=1), changed.channels + x.channels - first, x.path)


def _shuffle(g: Network, x: Map) -> Map:
    """The shuffle of channels among groups."""
    groups = [n for n in (2, 3, 4) if x.channels % n == 0]
    if not groups:
        return x
    n = int(g.pick(*groups))
    shape = g.op("Shape", x.name)
    parts = [g.size(x.name, 0), g.constant([n]), g.constant([x.channels // n]), g.constant([-1])]
    wide = g.op("Reshape", x.name, g.op("Concat", *parts, axis=0), allowzero=0)
    turned = g.op("Transpose", wide, perm=[0, 2, 1, 3])
    return Map(g.op("Reshape", turned, shape, allowzero=1), x.channels, x.path)


def _last(g: Network, x: Map) -> Map:
    """Layers over the channels, which come last meanwhile."""
    rank, c = g.rank, x.channels
    name = g.op("Transpose", x.name, perm=[0, *range(2, 2 + rank), 1])
    if g.chance(0.7):
        name = g.op("LayerNormalization", name, g.weight(c), g.weight(c), epsilon=0.01)
    inner = g.whole(1, 50)
    name = g.op("MatMul", g.bytes(name), g.weight(c, inner, fan=c))
    name = g.act(g.op("Add", name, g.weight(inner)))
    outs = g.pick(c, g.whole(1, 30))
    name = g.op("MatMul", g.bytes(name), g.weight(inner, outs, fan=inner))
    name = g.op("Transpose", name, perm=[0, rank + 1, *range(1, 1 + rank)])
    if outs == c and g.chance(0.7):
        name = g.op("Add", name, x.name)
    return Map(name, int(outs), x.path)


def _spots(g: Network, x: Map) -> Map:
    """Attention to places: a gate from the mean and the largest of the channels."""
    one = g.constant([1])
    both = [g.op(k, x.name, one, keepdims=1) for k in ("ReduceMean", "ReduceMax")]
    stack = g.op("Concat", *both, axis=1)
    gate = g.op("Conv", stack, g.weight(1, 2, *[7] * g.rank), pads=[3] * (2 * g.rank))
    return Map(g.op("Mul", x.name, g.op("Sigmoid", gate)), x.channels, x.path)


def _roll(g: Network, x: Map) -> Map:
    """The image moved in a circle, as windows of attention are."""
    axis = g.whole(2, 1 + g.rank)
    by = g.whole(1, 3)
    at, far = g.constant([axis]), g.constant([1 << 40])
    tail = g.op("Slice", x.name, g.constant([by]), far, at)
    head = g.op("Slice", x.name, g.constant([0]), g.constant([by]), at)
    return Map(g.op("Concat", tail, head, axis=axis), x.channels, x.path)


def _flip(g: Network, x: Map) -> Map:
    axis = g.whole(1, 1 + g.rank)
    steps = [[-1], [-(1 << 40)], [axis], [-1]]
    return Map(g.op("Slice", x.name, *map(g.constant, steps)), x.channels, x.path)


def _every_second(g: Network, x: Map) -> Map:
    axes = list(range(2, 2 + g.rank))
    steps = [[0] * g.rank, [1 << 40] * g.rank, axes, [2] * g.rank]
    return Map(g.op("Slice", x.name, *map(g.constant, steps)), x.channels, (*x.path, "half"))


def _recurrent(g: Network, x: Map) -> Map:
    """A recurrent layer over the places of an image, row by row, or of a signal."""
    c, hidden = x.channels, g.whole(1, 20)
    shape = g.op("Shape", x.name)
    parts = [g.constant([0]), g.constant([c]), g.constant([-1])]
    flat = x.name if g.rank == 1 else g.op("Reshape", x.name, g.op("Concat", *parts, axis=0))
    rows = g.op("Transpose", flat, perm=[2, 0, 1])
    kind, many = g.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    ways = g.pick("forward", "bidirectional", "reverse")
    d = 2 if ways == "bidirectional" else 1
    inputs = [rows, g.weight(d, many * hidden, c, fan=c),
              g.weight(d, many * hidden, hidden, fan=hidden)]  # fmt: skip
    if g.chance(0.6):
        inputs.append(g.weight(d, 2 * many * hidden, fan=4))
    if g.chance(0.4):
        inputs += [""] * (5 - len(inputs))
        size = g.op("Concat", g.constant([d]), g.size(rows, 1), g.constant([hidden]), axis=0)
        inputs.append(g.op("Expand", g.number(0.1), size))
    more = {"linear_before_reset": g.pick(0, 1)} if kind == "GRU" else {}
    found = g.op(kind, *inputs, count=2, hidden_size=hidden, direction=ways, **more)[0]
    turned = g.op("Transpose", found, perm=[2, 1, 3, 0])
    lead = [g.size(x.name, 0), g.constant([d * hidden])]
    rest = g.op("Slice", shape, g.constant([2]), g.constant([9]))
    name = g.op("Reshape", turned, g.op("Concat", *lead, rest, axis=0), allowzero=1)
    return Map(name, d * hidden, x.path)


def _attend(g: Network, x: Map) -> Map:
    """Attention of all places to each other."""
    heads, c = g.pick(1, 2, 3), x.channels
    per = g.pick(4, 8, 5)
    shape = g.op("Shape", x.name)
    flat = g.op("Reshape", x.name, g.constant([0, c, -1]))
    rows = g.op("Transpose", flat, perm=[0, 2, 1])
    out = attention(g, rows, rows, c, heads, per, "", causal=g.chance(0.2))
    back = g.op("Transpose", g.op("MatMul", out, g.weight(heads * per, c, fan=heads * per)),
                perm=[0, 2, 1])  # fmt: skip
    name = g.op("Reshape", back, shape, allowzero=1)
    return Map(g.op("Add", name, x.name) if g.chance(0.7) else name, c, x.path)


def _total(g: Network, x: Map) -> Map:
    """Sums along an axis, scaled so that they stay small."""
    axis = g.constant(np.array(g.whole(1, 1 + g.rank)))
    if g.dtype == "float16":
        return x
    summed = g.op("CumSum", x.name, axis, reverse=g.pick(0, 1), exclusive=g.pick(0, 1))
    return Map(g.op("Tanh", g.op("Mul", summed, g.number(0.1))), x.channels, x.path)


_IMAGE: tuple[Callable[..., Map], ...] = (
    _conv, _conv, _conv, _conv, _squeeze, _pool, _grow, _normalize, _halves, _shuffle, _last,
    _spots, _roll, _flip, _every_second, _attend, _recurrent, _total,
)  # fmt: skip
_SIGNAL: tuple[Callable[..., Map], ...] = (
    _conv, _conv, _conv, _squeeze, _pool, _grow, _normalize, _halves, _last, _roll, _flip,
    _every_second, _attend, _recurrent, _recurrent, _total,
)  # fmt: skip


def _maps(g: Network, x: Map, blocks: Sequence[Callable[..., Map]]) -> list[str]:
    """Append blocks to a value, then an end; return the outputs."""
    found = [x]
    for _ in range(g.whole(2, 9)):
        kind = g.random.random()
        if kind < 0.15:
            x = _residual(g, x, found)
        elif kind < 0.25:
            x = _resized(g, x, found)
        else:
            x = g.pick(*blocks)(g, x)
        found.append(x)
    outputs = []
    if g.chance(0.4):
        outputs.append(g.pick(*found[1:]).name)
    end = g.pick("map", "classes", "rows", "mean")
    name = x.name
    if end == "classes":
        pooled = g.op("Flatten", g.op("GlobalAveragePool", x.name))
        w = g.weight(10, x.channels)
        name = g.op("Gemm", g.bytes(pooled), w, g.weight(10), transB=1)
        if g.chance(0.5):
            name = g.op("Softmax", name, axis=-1)
    elif end == "rows":
        shape = g.constant([0, x.channels, -1])
        name = g.op("Transpose", g.op("Reshape", x.name, shape), perm=[0, 2, 1])
        name = g.op("MatMul", name, g.weight(x.channels, 7, fan=x.channels))
        name = g.op("Softmax", name, axis=g.pick(-1, 1))
    elif end == "mean":
        kind = g.pick("ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp")
        name = g.op(kind, x.name, g.constant([g.whole(1, 1 + g.rank)]), keepdims=g.pick(0, 1))
    outputs.append(name)
    return list(dict.fromkeys(name for name in outputs if name.startswith("v")))


def network(seed: int) -> tuple[onnx.ModelProto, str, list[Feed]]:
    """Return a network, its precision ("bytes" if quantised), and feeds of eight shapes."""
    g = Network(np.random.default_rng(seed))
    kind = g.pick("image", "image", "signal", "text")
    precision = str(g.pick(*["float32"] * 4, "float16", "float64", "bytes", "bytes"))
    g.quantized = precision == "bytes"
    g.dtype = "float32" if g.quantized else precision
    g.rank = {"image": 2, "signal": 1, "text": 0}[kind]
    channels = g.pick(1, 2, 3, 3, 4, 8, 17)
    named: dict[str, list[int | str]]
    if kind == "text":
        outputs = text(g)
        named = {"ids": ["batch", "length"], "mask": ["batch", "length"]}
    else:
        outputs = []
        while not outputs:
            g.nodes.clear()
            blocks = _IMAGE if kind == "image" else _SIGNAL
            outputs = _maps(g, Map("x", channels), blocks)
        named = {"x": ["batch", channels, *("height", "width")[: g.rank]]}
    read = {name for node in g.nodes for name in node.input}
    feeds = []
    for _ in range(8):
        sizes = {"batch": g.pick(1, 1, 2, 3, 3, 5, 8), "length": g.pick(1, 2, 3, 7, 12, 31, 64)}
        sizes |= {name: g.pick(1, 2, 3, 5, 8, 13, 16, 17, 24, 31) for name in ("height", "width")}
        if g.chance(0.08):
            sizes[g.pick(*sizes)] = 0
        feed = {}
        for name, shape in named.items():
            if name not in read:
                continue
            size = [sizes[n] if isinstance(n, str) else n for n in shape]
            if name == "x":
                feed[name] = g.random.standard_normal(size).astype(g.dtype)
            elif name == "ids":
                feed[name] = g.random.integers(0, 50, size)
            else:
                feed[name] = (np.arange(size[1]) < g.random.integers(1, 70, (size[0], 1))) * 1
        feeds.append(feed)
    used = {k: v for k, v in g.constants.items() if k in read}
    graph = helper.make_graph(
        g.nodes,
        f"network {seed}",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(feeds[0][name].dtype), named[name]
            )
            for name in feeds[0]
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in used.items()],
    )
    made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    return made, precision, feeds
