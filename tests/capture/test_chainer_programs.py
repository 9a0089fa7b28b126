"""Programs like Chainer's examples: chains of labels, distributions, texts in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.distributions as D  # noqa: N812
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import Variable, reporter


def leaves(value: Any) -> Iterator[np.ndarray]:
    """Yield the arrays of a result in their order."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield np.asarray(getattr(value, "array", value))


def compare(program: Any, types: tuple[Any, ...], *arguments: Any) -> None:
    with hagane.using_config("train", False), hagane.no_backprop_mode():
        session = hagane.InferenceSession(hagane.capture(program, *types))
        expected = [*leaves(program(*arguments))]
    names = [value.name for value in session.get_inputs()]
    found = session.run(None, dict(zip(names, leaves(list(arguments)), strict=True)))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


class Tagger(hagane.Chain):
    """Tags of sentences, which the longest come first of."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.feature, self.crf = L.EmbedID(20, 4), L.CRF1d(4)

    def forward(self, xs: Any, ys: Any) -> Any:
        hs = [self.feature(x) for x in xs]
        loss = self.crf(hs, ys, transpose=True)
        reporter.report({"loss": loss}, self)
        return loss, self.crf.argmax(hs, transpose=True)[1]


def test_chains_of_labels_of_several_lengths() -> None:
    rng = np.random.default_rng(5)
    lengths = (3, 5, 4)
    xs = [rng.integers(0, 20, n).astype("i") for n in lengths]
    ys = [rng.integers(0, 4, n).astype("i") for n in lengths]
    types = [f"int32[{n}]" for n in lengths]
    compare(Tagger(), (types, types), xs, ys)


class Bag(hagane.Chain):
    """The mean of the words of each text."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(20, 4, ignore_label=-1)

    def forward(self, xs: Any) -> Any:
        block = hagane.dataset.concat_examples(xs, padding=-1)
        lengths = self.xp.array([len(x) for x in xs], np.int32)[:, None]
        total = F.sum(self.embed(block), axis=1) / lengths
        device = hagane.get_device("@numpy")
        return total, device.send(total.array) * device.xp.float32(2), self.device.xp.zeros(1, "f")


def test_texts_of_any_lengths_are_padded_to_a_batch() -> None:
    xs = [np.arange(2, 2 + n, dtype="i") for n in (3, 5)]
    compare(Bag(), (["int32[first]", "int32[second]"],), xs)


def distributed(x: Any) -> Any:
    normal = D.Normal(x, F.exp(x * 0.5))
    plain = D.Normal(x * 0, log_scale=x * 0)
    return (
        normal.log_prob(x * 2), normal.cdf(x), normal.entropy, normal.variance,
        hagane.kl_divergence(normal, plain), D.Independent(normal).log_prob(x + 1),
        D.Bernoulli(logit=x).log_prob(F.cast(x.array > 0, "f").array),
        D.Categorical(F.softmax(x)).entropy,
    )  # fmt: skip


class Distributed(hagane.Chain):
    def forward(self, x: Any) -> Any:
        return distributed(F.identity(x))


def test_distributions_are_read_from_their_source() -> None:
    compare(Distributed(), ("float32[n, 3]",), np.linspace(-1, 1, 6, dtype="f").reshape(2, 3))


class Cropped(hagane.Chain):
    def forward(self, x: Any, more: Any) -> Any:
        whole = F.tanh(x)
        part = whole[:, : more.shape[1]]
        part += more  # a new variable
        return part, F.sum(whole)


def test_a_part_of_a_variable_that_is_added_to_is_a_new_variable() -> None:
    x = np.linspace(-1, 1, 6, dtype="f").reshape(2, 3)
    compare(Cropped(), ("float32[n, 3]", "float32[n, 2]"), x, x[:, 1:])


def chosen(x: Any) -> Any:
    order = np.argsort([-3, -5, -4]).astype("i")
    parts = [x, x * 2, x * 3]
    found = [parts[place] for place in order]
    found[order[1]] = x * 4
    return found


def test_places_that_the_program_tells_cost_no_node() -> None:
    model = hagane.capture(chosen, "float32[n]")
    assert {node.op_type for node in model.graph} <= {"Mul", "Identity"}
    (first, *rest) = hagane.InferenceSession(model).run(None, {"x": np.ones(1, "f")})
    assert [float(value[0]) for value in (first, *rest)] == [
        float(Variable(value).array[0]) for value in chosen(np.ones(1, "f"))
    ]


@pytest.mark.parametrize("reduce", ["mean", "no"])
def test_losses_of_chains_by_times(reduce: str) -> None:
    rng = np.random.default_rng(6)
    cost = rng.normal(size=(3, 3)).astype("f")

    def loss(first: Any, second: Any) -> Any:
        labels = [np.array([0, 2, 1], "i"), np.array([1, 1], "i")]
        return F.crf1d(cost, [first, second], labels, reduce)

    x = rng.normal(size=(3, 3)).astype("f")
    compare(loss, ("float32[3, 3]", "float32[2, 3]"), x, x[:2] * 2)


@pytest.mark.parametrize("reduce", ["mean", "no"])
def test_losses_without_alignment(reduce: str) -> None:
    rng = np.random.default_rng(7)
    lengths = (None, None) if reduce == "mean" else (np.array([3, 2], "i"), np.array([1, 1], "i"))

    def loss(first: Any, second: Any, third: Any, labels: Any) -> Any:
        xs = [first, second, third]
        return F.connectionist_temporal_classification(xs, labels, 0, *lengths, reduce)

    xs = [rng.normal(size=(2, 4)).astype("f") for _ in range(3)]
    types = ("float32[2, 4]",) * 3
    compare(loss, (*types, "int32[2, 2]"), *xs, np.array([[1, 2], [3, 3]], "i"))


def special(x: Any) -> Any:
    x = F.identity(x)
    square = F.matmul(x, F.transpose(x)) + np.eye(2, dtype="f")
    return (
        F.erfinv(x), F.erfcinv(x), F.erfcx(x), F.digamma(x), F.lgamma(x), F.ndtri(x), F.log_ndtr(x),
        F.inv(square), F.cholesky(square), F.batch_inv(F.stack([square, square * 2])),
    )  # fmt: skip


def test_functions_whose_formulas_pytorch_has_too() -> None:
    compare(special, ("float32[2, 3]",), np.array([[0.3, 0.1, 0.9], [0.5, 1e-6, 0.7]], "f"))
