"""Random programs over variables of named sizes, in Chainer's functions and links."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

# Expressions of ``{a}`` and ``{b}``; ``@`` is an axis, ``#`` a size, ``^`` a small number from one
# on, ``~`` one of either sign.
_EXPRESSIONS = (
    "F.reshape({a}, (#, #))", "F.reshape({a}, ({a}.shape[0], -1))", "F.reshape({a}, (-1, #))",
    "F.flatten({a})", "F.transpose({a})", "F.transpose({a}, (1, 0))", "F.transpose({a}, (0, 2, 1))",
    "{a}.reshape(-1)", "{a}.T", "F.swapaxes({a}, @, @)", "F.rollaxis({a}, @, @)", "F.moveaxis({a}, @, @)",
    "F.expand_dims({a}, @)", "F.squeeze({a})", "F.squeeze({a}, @)", "F.broadcast_to({a}, (#, #))",
    "F.broadcast_to({a}, {b}.shape)", "F.tile({a}, (^, ^))", "F.repeat({a}, ^, @)",
    "F.sum({a}, axis=@)", "F.mean({a}, axis=@, keepdims=True)", "F.max({a}, axis=@)", "F.argmax({a}, axis=@)",
    "F.sum({a}, axis=(0, @))", "F.prod({a}, axis=@)", "F.logsumexp({a}, axis=@)", "F.cumsum({a}, axis=@)",
    "{a} + {b}", "{a} * {b}", "{a} / 2", "F.matmul({a}, {b})", "F.matmul({a}, {b}, transb=True)",
    "F.matmul({a}, {b}, transa=True)", "F.where(np.ones({a}.shape) > 0, {a}, {b})", "F.maximum({a}, {b})",
    "F.batch_matmul({a}, {b})", "F.batch_matmul({a}, {b}, transb=True)", "F.scale({a}, {b})", "F.bias({a}, {b}, axis=0)",
    "F.concat([{a}, {b}], axis=@)", "F.stack([{a}, {b}], axis=@)", "F.hstack([{a}, {b}])",
    "F.vstack([{a}, {b}])", "F.dstack([{a}, {b}])", "F.split_axis({a}, ^, @)[0]", "F.split_axis({a}, 2, @)[1]",
    "F.split_axis({a}, [1, ^], @)[1]", "F.separate({a}, axis=@)[0]", "F.get_item({a}, ~)", "{a}[:, ~]",
    "{a}[^:]", "{a}[:-^]", "{a}[..., ::^]", "{a}[[0, ^]]", "{a}[:, None]", "{a}[..., -^:, :]",
    "F.softmax({a}, axis=@)", "F.log_softmax({a}, axis=@)", "F.relu({a})", "F.maxout({a}, ^, 1)", "F.crelu({a}, @)",
    "F.clipped_relu({a})", "F.pad({a}, ^, 'constant')", "F.pad({a}, ((0, ^), (1, 0)), 'constant')",
    "F.flip({a}, @)", "F.fliplr({a})", "F.flipud({a})", "F.im2col({a}, ^, ^)", "F.depth2space({a}, ^)",
    "F.space2depth({a}, ^)", "F.diagonal({a}, 0, @, @)", "F.cast({a}, 'float64')", "F.normalize({a}, axis=@)",
    "F.local_response_normalization({a})", "F.max_pooling_2d({a}, ^, ^)", "F.max_pooling_2d({a}, ^, ^, cover_all=False)",
    "F.average_pooling_2d({a}, ^, ^)", "F.max_pooling_1d({a}, ^, ^)", "F.average_pooling_1d({a}, ^, ^, pad=1)",
    "F.unpooling_2d({a}, ^)", "F.spatial_pyramid_pooling_2d({a}, ^, 'max')", "F.resize_images({a}, (#, #))",
    "F.convolution_2d({a}, np.ones((4, #, ^, 2), 'f'), stride=^)",
    "F.convolution_1d({a}, np.ones((2, #, ^), 'f'), stride=^, pad=1)", "F.deconvolution_2d({a}, np.ones((#, 3, ^, 2), 'f'), stride=^)",
    "F.dilated_convolution_2d({a}, np.ones((4, #, ^, 2), 'f'), dilate=^)",
    "F.linear({a}, np.ones((2, #), 'f'))", "F.linear({a}, np.ones((2, #), 'f'), n_batch_axes=^)", "L.Linear(#, 3)({a})", "L.Linear(None, 3)({a})",
    "L.Linear(#, 3)({a}, n_batch_axes=^)", "L.Convolution2D(#, 3, ^, stride=^)({a})", "L.Convolution2D(None, 3, ^, pad=^)({a})",
    "L.Convolution1D(None, 3, ^)({a})", "L.Deconvolution2D(#, 3, ^, stride=^)({a})", "L.Scale(1, (#,))({a})", "L.Bias(1, (#,))({a})",
    "L.LayerNormalization(#)({a})", "L.GroupNormalization(^)({a})", "L.Maxout(#, 3, ^)({a})", "L.Bilinear(#, #, 2)({a}, {b})",
    "F.layer_normalization({a}, np.ones(#, 'f'), np.zeros(#, 'f'))", "F.group_normalization({a}, ^, np.ones(#, 'f'), np.zeros(#, 'f'))",
    "L.StatefulGRU(#, 4)({a})", "L.LSTM(#, 4)({a})", "L.LSTM(None, 4)({a})", "L.GRU(#, 4)({a})",
    "L.Highway(#)({a})", "L.Inception(#, 2, 2, 2, 2, 2, 2)({a})", "L.MLPConvolution2D(#, (3, 2), ^)({a})", "L.PReLU((#,))({a})", "L.Swish((#,))({a})",
    "F.embed_id(np.zeros((#, ^), 'i'), {a})", "L.EmbedID(5, 3)(F.argmax({a}, axis=@))", "F.select_item({a}, np.zeros(#, 'i'))", "F.permutate({a}, np.arange(#, dtype='i'), axis=1)",
    "F.mean_squared_error({a}, {b})", "F.mean_absolute_error({a}, {b})", "F.squared_error({a}, {b})", "F.softmax_cross_entropy({a}, np.zeros(#, 'i'))",
    "F.sigmoid_cross_entropy({a}, np.zeros((#, #), 'i'))", "F.sigmoid_cross_entropy({a}, np.zeros((#, #), 'i'), reduce='no')", "F.huber_loss({a}, {b}, 1.0)", "F.huber_loss({a}, {b}, 1.0, reduce='no')",
    "F.hinge({a}, np.zeros(#, 'i'))", "F.contrastive({a}, {b}, np.zeros(#, 'i'), reduce='no')", "F.triplet({a}, {b}, {b}, reduce='no')",
    "F.gaussian_kl_divergence({a}, {b})", "F.cross_covariance({a}, {b})",
    "F.accuracy({a}, np.zeros(#, 'i'))", "F.bilinear({a}, {b}, np.ones((#, #, 2), 'f'))", "F.inv({a})", "F.det({a})", "F.batch_det({a})", "F.batch_inv({a})", "F.einsum('ij,jk->ik', {a}, {b})",
    "F.einsum('ij,ij->i', {a}, {b})", "F.einsum('...i,i->...', {a}, {b})", "F.tensordot({a}, {b}, axes=^)", "F.average({a}, axis=@)", "F.batch_l2_norm_squared({a})", "F.linear_interpolate({a}, {a}, {b})", "F.fmod({a}, {b})",
    "F.scatter_add({a}, 0, F.sum({a}, axis=0))", "F.upsampling_2d({a}, np.zeros({a}.shape, 'i'), ^)", "F.roi_pooling_2d({a}, np.zeros((2, 5), 'f'), 2, 2, 1.0)",
    "F.sum_to({a}, (1, #))",  "F.erf({a})", "F.dropout({a}, 0.3)", "F.zoneout({a}, {a}, 0.3)", "F.as_strided({a}, (2,), (1,))", "F.pad_sequence([{a}, {b}])", "F.arctan2({a}, {b})",
    "F.lstm({a}, {b})[1]", "F.slstm({a}, {a}, {b}, {b})[1]", "F.tree_lstm({a}, {a}, {b})[1]",
)  # fmt: skip
_SHAPES = (
    ("n", "6"), ("n", "3", "m"), ("n", "4", "8"), ("n", "4", "h", "w"), ("3", "n"), ("n",),
    ("n", "m"), ("n", "1"), ("1", "n"), ("b", "n", "4"), ("n", "n"), ("n", "2*n"), ("n + 1", "4"), ("n", "3", "6", "6"), ("2", "4", "h", "h"),
)  # fmt: skip
SIZES: tuple[Mapping[str, int], ...] = tuple(
    dict(zip("nmhwb", numbers, strict=True))
    for numbers in (
        (2, 3, 6, 4, 2), (3, 2, 4, 6, 1), (4, 4, 3, 5, 2), (6, 1, 6, 6, 3), (1, 5, 2, 3, 4),
        (5, 6, 7, 8, 1),
    )
)  # fmt: skip
_TRIES = 30


class Drawn(NamedTuple):
    """A program and the shapes of its inputs.

    Attributes:
        text: A module with a function ``program(x, y)``.
        shapes: Of ``x`` and ``y``, each size as text.
    """

    text: str
    shapes: tuple[tuple[str, ...], tuple[str, ...]]

    def types(self) -> dict[str, str]:
        """Return the types of the inputs."""
        named = zip("xy", self.shapes, strict=True)
        return {name: f"float32[{', '.join(shape)}]" for name, shape in named}


class Library:
    """Chainer, or hagane in its place, in which programs are drawn and run.

    Args:
        chainer: The module.
    """

    def __init__(self, chainer: Any):
        self._names = {"F": chainer.functions, "L": chainer.links, "np": np}

    def draw(self, seed: int) -> Drawn:
        """Return a program that runs at some sizes, as a rule."""
        draw = random.Random(seed)
        first, second = draw.choice(_SHAPES), draw.choice(_SHAPES)
        drawn = Drawn("", (first, first if draw.random() < 0.4 else second))
        values = dict(zip("xy", self._inputs(drawn, draw.choice(SIZES[:4])), strict=True))
        names, lines = ["x", "y"], []
        for number in range(draw.randint(1, 4)):
            made = None
            for _ in range(_TRIES):
                text = _expression(draw, names)
                made = self._value(text, values)
                if made is not None or draw.random() < 0.03:
                    break
            lines.append(f"    v{number} = {text}")
            names.append(f"v{number}")
            if made is None:
                break
            values[names[-1]] = made
        head = (
            "import chainer.functions as F\nimport chainer.links as L\nimport numpy as np\n\n\n"
            "def program(x, y):"
        )
        return drawn._replace(text="\n".join([head, *lines, f"    return {names[-1]}", ""]))

    def run(self, drawn: Drawn, sizes: Mapping[str, int]) -> tuple[str, tuple[int, ...]] | None:
        """Return the element type and shape of a program's result; None if it fails."""
        body = drawn.text.partition("def program(x, y):\n")[2].splitlines()
        values: dict[str, Any] = dict(zip("xy", self._inputs(drawn, sizes), strict=True))
        for line in body[:-1]:
            name, _, text = line.strip().partition(" = ")
            values[name] = self._value(text, values)
            if values[name] is None:
                return None
        found = values[body[-1].split()[-1]]
        return str(found.dtype), tuple(found.shape)

    def _inputs(self, drawn: Drawn, sizes: Mapping[str, int]) -> list[Any]:
        random_ = np.random.RandomState(0)
        shapes = [[eval(size, {}, dict(sizes)) for size in shape] for shape in drawn.shapes]
        return [random_.rand(*shape).astype("f") + np.float32(0.5) for shape in shapes]

    def _value(self, text: str, values: Mapping[str, Any]) -> Any:
        try:
            with np.errstate(all="ignore"):
                found = eval(text, dict(self._names), dict(values))
        except Exception:  # each function has errors of its own
            return None
        return found if hasattr(found, "dtype") and hasattr(found, "shape") else None


def _expression(draw: random.Random, names: list[str]) -> str:
    a = draw.choice(names[-2:] if draw.random() < 0.8 else names)
    text = draw.choice(_EXPRESSIONS)
    for mark, drawn in (
        ("@", (0, 1, 2, -1, -2, 3)), ("#", (1, 2, 3, 4, 6, 8, 12)), ("^", (1, 2, 3)),
        ("~", (-2, -1, 0, 1, 2, 3)),
    ):  # fmt: skip
        while mark in text:
            text = text.replace(mark, str(draw.choice(drawn)), 1)
    return text.format(a=a, b=draw.choice(names))


def serve() -> None:
    """Answer lines of JSON in Chainer's environment: a seed, or a program and sizes."""
    import warnings

    import chainer

    warnings.simplefilter("ignore")
    np.float = float  # type: ignore[attr-defined]  # a name that Chainer 7 uses
    library = Library(chainer)
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, int):
            print(json.dumps(library.draw(asked)), flush=True)
        else:
            text, shapes, sizes = asked
            first, second = shapes
            print(json.dumps(library.run(Drawn(text, (first, second)), sizes)), flush=True)


if __name__ == "__main__":
    serve()
