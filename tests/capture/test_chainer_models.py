"""Models in Chainer's style become graphs for any sizes, which compute what they compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest

import hagane
from hagane.graph import to_proto
from hagane.nn import aliasing
from tests.models.case import Case, load
from tests.models.catalogue_chainer import CHAINER
from tests.models.inputs import draw_arrays
from tests.outside.chainer_values import flat

pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = ("document", "dcgan-generator", "densenet", "vae-forward", "vgg16-count")
LONG = (
    "googlenet", "resnet50", "unet", "vgg16", "vgg16-objective", "vit", "seq2seq",
    "seq2seq-translate",
)  # fmt: skip
# Their linear layers take a number of features, which follows from these sizes.
FIXED = {"vgg16": {"height": 32, "width": 32}, "vgg16-objective": {"height": 32, "width": 32}}


@pytest.fixture
def chainer() -> Iterator[None]:
    """Let ``import chainer`` find hagane, for the models' files."""
    aliasing.install()
    with hagane.using_config("train", False):
        yield


def leaves(value: Any) -> Iterator[Any]:
    """Yield the arrays of arguments in order."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, np.ndarray):
        yield value


def compare(name: str) -> None:
    """Capture a model with open sizes, and compare graph and model at several of them."""
    (case,) = (case for case in CHAINER if case.name == f"chainer-{name}")
    fixed = FIXED.get(name, {})
    np.random.seed(0)
    made = eval(case.make, vars(load(case.path)))
    method = case.target.partition(".")[2]
    target = getattr(made, method) if method else made
    target(**draw_arrays(case, sized(case, 0, fixed)))  # lazy links get their sizes
    types = {key: with_sizes(text, fixed) for key, text in case.inputs.items()}
    model = hagane.capture(target, **types)
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    inputs = [value.name for value in session.get_inputs()]
    for number in range(3):
        given = draw_arrays(case, sized(case, number, fixed), number)
        arrays = list(leaves(list(given.values())))
        # Attributes that the call gives new values follow the arguments.
        states = [np.asarray(getattr(target.__self__, n).array) for n in inputs[len(arrays) :]]
        found = session.run(None, dict(zip(inputs, [*arrays, *states], strict=True)))
        expected = [np.asarray(x) for x in flat(target(**given))]
        for ours, theirs in zip(found, expected, strict=False):  # states follow the results
            assert ours.shape == theirs.shape
            assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def sized(case: Case, number: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return sizes of a case, others for each number."""
    drawn = {name: sizes[number % len(sizes)] for name, sizes in case.sizes.items()}
    return {**drawn, **fixed}


def with_sizes(text: str, fixed: Mapping[str, int]) -> str:
    """Return a type with numbers in the place of some names."""
    for name, size in fixed.items():
        text = text.replace(name, str(size))
    return text


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.usefixtures("chainer")
def test_a_model_becomes_a_graph_for_any_sizes(name: str) -> None:
    compare(name)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
@pytest.mark.usefixtures("chainer")
def test_a_large_model_becomes_a_graph_for_any_sizes(name: str) -> None:
    compare(name)
