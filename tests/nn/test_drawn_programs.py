"""Models drawn at random: gradients, second ones included, against central differences.

``tests/outside/chainer_programs.py`` compares programs of the same kind, with their training, with
Chainer itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane as chainer
import hagane.functions as F  # noqa: N812
from tests.nn.drawn.program import write

STEP = 1e-5
QUICK = 40


def load(seed: int) -> dict[str, Any]:
    """Return the names of a drawn program, in which chainer is hagane."""
    source = write(seed, smooth=True).replace("import chainer.", "import hagane.")
    names: dict[str, Any] = {}
    exec(source.replace("import chainer\n", "import hagane as chainer\n"), names)
    return names


def check(seed: int) -> None:
    with chainer.using_config("dtype", np.float64):
        names = load(seed)
        x = names["drawn"](2, names["SHAPE"], -1, 1)
        ids = np.array([1, 0, 4, 1], "i")
        model = names["Model"]()
        model(x, ids)
        random = np.random.RandomState(seed)
        leaves = [p for _, p in sorted(model.namedparams())]
        given = chainer.Parameter(x)
        leaves.append(given)
        ways = [random.uniform(-1, 1, p.shape) for p in leaves]
        others = [random.uniform(-1, 1, p.shape) for p in leaves]

        def derivative() -> Any:
            """Return the change of the loss along ``others``, to be differentiated."""
            loss = model(given, ids)
            gradients = chainer.grad([loss], leaves, enable_double_backprop=True)
            pairs = zip(gradients, others, strict=True)
            return loss, sum((F.sum(g * u) for g, u in pairs if g is not None), F.sum(given * 0))

        loss, change = derivative()
        firsts = chainer.grad([loss], leaves)
        seconds = chainer.grad([change], leaves)
        ends = []
        for sign in (1, -1):
            for p, way in zip(leaves, ways, strict=True):
                p.array = p.array + sign * STEP * way
            ends.append([float(one.array) for one in derivative()])
            for p, way in zip(leaves, ways, strict=True):
                p.array = p.array - sign * STEP * way
        for order, gradients in enumerate((firsts, seconds)):
            found = sum(
                float(np.sum(g.array * way))
                for g, way in zip(gradients, ways, strict=True)
                if g is not None
            )
            expected = (ends[0][order] - ends[1][order]) / (2 * STEP)
            assert found == pytest.approx(expected, rel=1e-4, abs=1e-5), (seed, order)


@pytest.mark.parametrize("seed", range(QUICK))
def test_gradients_of_drawn_models_agree_with_differences(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(QUICK, 400))
def test_gradients_of_more_drawn_models_agree_with_differences(seed: int) -> None:
    check(seed)
