"""Links, and functions of images and sequences."""

from __future__ import annotations

import math

from tests.nn.drawn.text import Shape, Text, Value


def rows(t: Text, x: Value) -> None:
    """Write a link over (batch, units)."""
    if len(x.shape) != 2:
        return
    n, units = x.shape
    out = t.random.randrange(2, 6)
    lazy = t.random.choice([None, units])
    choices: list[tuple[str, int]] = [
        (f"L.Linear({lazy}, {out})", out),
        (f"L.Linear({units}, {out}, nobias=True)", out),
        (f"L.Linear({out})", out),
        (f"L.Linear({units}, {out}, initialW=chainer.initializers.HeNormal(0.5))", out),
        (f"L.Linear({units}, {out}, initialW=chainer.initializers.Orthogonal(), initial_bias=0.1)"
         if out <= units else f"L.Linear({units}, {out}, initialW=0.2)", out),
        (f"chainer.Sequential(L.Linear({units}, 4), F.tanh, L.Linear(4, {out}))", out),
        (f"chainer.Sequential(L.Linear(None, {units}), F.sigmoid).repeat(2)", units),
        (f"L.Bias(1, ({units},))", units),
        (f"L.Scale(1, ({units},), bias_term=True)", units),
        (f"L.LayerNormalization({t.random.choice([None, units])})", units),
        (f"L.Highway({units}, activate=F.tanh)", units),
        (f"L.GRU({units}, {out})", out),
        (f"L.LSTM({t.random.choice([None, units])}, {out})", out),
        (f"L.StatefulPeepholeLSTM({units}, {out})", out),
        (f"L.StatefulMGU({units}, {out})", out),
        (f"L.Swish(({units},))", units),
        (f"L.Linear({units}, {out}).copy('copy')", out),
        (f"Block({units}, {out})", out),
        (f"Counted({units})", units),
        (f"L.Bilinear({units}, {units}, {out})", -out),
        (f"L.StatelessLSTM({units}, {out})", -out),
        (f"L.ChildSumTreeLSTM({units}, {out})", -out),
        (f"L.Linear({units}, {out}).copy('share')", out),
        (f"L.Linear({units}, {out}).add_hook(chainer.link_hooks.WeightStandardization())", out),
        (f"L.Linear({units}, {out}).add_hook(chainer.link_hooks.SpectralNormalization())", out),
        (f"chainer.Sequential(Block({units}, 3), L.Linear(3, {out})).copy()", out),
        (f"L.Classifier(chainer.Sequential(L.Linear({units}, 3), F.tanh)).predictor", 3),
        (f"L.BatchNormalization({t.random.choice([units, 'axis=0'])})" if n > 1 else
         f"L.Linear({units})", units),
    ]  # fmt: skip
    if not t.smooth:
        choices += [
            (f"L.Maxout({units}, {out}, 2)", out),
            (f"L.PReLU(({units},))", units),
            (f"L.SimplifiedDropconnect({units}, {out})", out),
            (f"L.StatefulZoneoutLSTM({units}, {out}, 0.3, 0.2)", out),
            (f"L.BatchNormalization({units}, decay=0.5, eps=1e-3, use_gamma=False)", units),
            (f"L.BatchRenormalization({units})", units),
            (f"L.DecorrelatedBatchNormalization({units}, eps=1e-2)", units),
        ]
    text, size = t.random.choice(choices)
    if ("Batch" in text and n < 3) or ("Stateful" in text and t.indent):
        return
    name = t.link(text)
    if size < 0:  # of several operands or results
        y = t.other(x.shape)
        call = {
            "L.Bilinear": f"{name}({x.name}, {y})",
            "L.StatelessLSTM": f"sum({name}(*{name}(None, None, {x.name}), {y}))",
            "L.ChildSumTreeLSTM": f"{name}(*{name}({x.name}), {y})[1]",
        }[text.split("(")[0]]
        t.let(call, (n, -size))
        return
    value = t.let(f"{name}({x.name})", (n, size))
    if t.random.random() < 0.15 and size == units and "Stateful" not in text:
        t.let(f"{name}({value.name})", (n, size))  # shared


def images(t: Text, x: Value) -> None:
    """Write a link or function over (batch, channels, height, width)."""
    if len(x.shape) != 4:
        return
    n, c, h, w = x.shape
    m = t.random.randrange(1, 4)
    k, s, p = t.random.randrange(1, 4), t.random.randrange(1, 3), t.random.randrange(2)
    grid = (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1
    cover = tuple(-(-(size + 2 * p - k) // s) + 1 for size in (h, w))
    if min(h, w) < 2 or min(grid) < 1 or math.prod(x.shape) > 800:
        return
    up = tuple(s * (size - 1) + k - 2 * p for size in (h, w))
    v = x.name
    links: list[tuple[str, Shape]] = [
        (f"L.Convolution2D({c}, {m}, {k}, {s}, {p})", (m, *grid)),
        (f"L.Convolution2D(None, {m}, {k}, stride={s}, pad={p}, nobias=True)", (m, *grid)),
        (f"L.Convolution2D({c}, {c * m}, {k}, {s}, {p}, groups={c})", (c * m, *grid)),
        (f"L.ConvolutionND(2, {c}, {m}, {k}, {s}, {p}, cover_all=True)", (m, *cover)),
        (f"L.DepthwiseConvolution2D({c}, {m}, {k}, {s}, {p})", (c * m, *grid)),
        (f"L.Convolution2D({c}, {m}, 2, pad=1, dilate=2)", (m, h, w)),
        (f"L.DilatedConvolution2D({c}, {m}, 2, pad=1, dilate=2)", (m, h, w)),
        (f"L.Deconvolution2D({c}, {m}, {k}, {s}, {p})", (m, *up)),
        (f"L.DeconvolutionND(2, {c}, {m}, {k}, {s}, {p})", (m, *up)),
        (f"L.GroupNormalization(1, {c})", (c, h, w)),
        (f"L.BatchNormalization({c})", (c, h, w)),
        (f"L.BatchNormalization(axis=(0, 2), size=({c}, {w}))", (c, h, w)),
        (f"L.Parameter(drawn(3, {x.shape}, -1, 1))", ()),
        (f"L.MLPConvolution2D({c}, ({m}, {m}), {k}, {s}, {p}, activation=F.tanh)", (m, *grid)),
        (f"L.Scale(1, ({c},))", (c, h, w)),
    ]
    if t.smooth:  # Chainer's second derivatives of it are zero
        links.append((f"L.LocalConvolution2D({c}, {m}, ({h}, {w}), 2)", (m, h - 1, w - 1)))
    functions: list[tuple[str, Shape]] = [
        (f"F.average_pooling_2d({v}, {k}, {s}, {p})", (c, *grid)),
        (f"F.average_pooling_nd({v}, {k}, {s}, {p}, pad_value=None)", (c, *grid)),
        (f"F.unpooling_2d({v}, 2, 2, 0, cover_all=False)", (c, 2 * h, 2 * w)),
        (f"F.local_response_normalization({v}, n=3)", (c, h, w)),
        (f"F.im2col({v}, {k}, {s}, {p})", (c * k * k, *grid)),
        (f"F.resize_images({v}, ({h + 1}, {w}))", (c, h + 1, w)),
        (f"F.spatial_transformer_sampler({v}, F.spatial_transformer_grid("
         f"drawn(5, ({n}, 2, 3), -0.4, 0.4), ({h}, {w})))", (c, h, w)),
        (f"F.average({v}, axis=(2, 3), keepdims=True)", (c, 1, 1)),
        (f"F.average_pooling_2d({v}, ({h}, {w}))", (c, 1, 1)),
    ]  # fmt: skip
    if not t.smooth:
        functions += [
            (f"F.max_pooling_2d({v}, {k}, {s}, {min(p, k - 1)}, cover_all=False)",
             (c, *((size + 2 * min(p, k - 1) - k) // s + 1 for size in (h, w)))),
            (f"F.max_pooling_nd({v}, 2)", (c, (h + 1) // 2, (w + 1) // 2)),
            (f"F.upsampling_2d(*F.max_pooling_2d({v}, 2, return_indices=True), ksize=2,"
             f" outsize=({h}, {w}))", (c, h, w)),
            (f"F.roi_max_pooling_2d({v}, np.array([[0, 0, {h}, {w}]] * {n}, DTYPE),"
             f" np.arange({n}, dtype='i'), 2, 1.0)", (c, 2, 2)),
            (f"F.roi_average_align_2d({v}, np.array([[0, 0, {h}, {w}]] * {n}, DTYPE),"
             f" np.arange({n}, dtype='i'), 2, 1.0, 2)", (c, 2, 2)),
        ]  # fmt: skip
    if c % 4 == 0:
        functions.append((f"F.depth2space({v}, 2)", (c // 4, 2 * h, 2 * w)))
    if h % 2 == w % 2 == 0:
        functions.append((f"F.space2depth({v}, 2)", (4 * c, h // 2, w // 2)))
    if t.random.random() < 0.6:
        text, shape = t.random.choice(links)
        if not shape:
            t.let(f"{v} + {t.link(text)}()", x.shape)
        elif min(shape) > 0 and not ("Batch" in text and n * h < 4):
            t.let(f"{t.link(text)}({v})", (n, *shape))
    else:
        text, shape = t.random.choice(functions)
        if min(shape) > 0 and shape[0] < 20:
            t.let(text, (n, *shape))


def lines(t: Text, x: Value) -> None:
    """Write a link or function over (batch, channels, length), or over sequences."""
    if len(x.shape) != 3:
        return
    n, c, length = x.shape
    m = t.random.randrange(1, 4)
    parts = f"[{x.name}[i, :{c}] for i in range({n})]"
    kind = t.random.choice(["LSTM", "GRU", "RNNTanh", "BiLSTM", "BiGRU", "BiRNNTanh"])
    state = "None, None" if "LSTM" in kind else "None"
    width = m * (2 if "Bi" in kind else 1)
    layers = t.random.randrange(1, 3)
    v = x.name
    nstep = f"L.NStep{kind}({layers}, {length}, {m}, 0)"
    choices: list[tuple[str, str, Shape]] = [
        (f"{{l}}({v})", f"L.Deconvolution1D({c}, {m}, 2)", (n, m, length + 1)),
        (f"F.stack({{l}}({state}, {parts})[-1])", nstep, (n, c, width)),
        (f"F.concat({{l}}({state}, {parts})[0], 1)", nstep, (n, layers * width)),
        (f"{{l}}({v}, n_batch_axes=2)", f"L.Linear({length}, {m})", (n, c, m)),
        (f"{{l}}({v}.reshape(-1, {length})).reshape({x.shape})",
         f"L.LayerNormalization({length})", x.shape),
    ]  # fmt: skip
    if length > 1:
        choices += [
            (f"{{l}}({v})", f"L.Convolution1D({c}, {m}, 2)", (n, m, length - 1)),
            (f"F.average_pooling_1d({v}, 2, 1)", "", (n, c, length - 1)),
        ]
    text, link, shape = t.random.choice(choices)
    t.let(text.replace("{l}", t.link(link) if link else ""), shape)


RULES = (rows, rows, rows, images, images, images, lines)
