"""Lists of as many variables as an open size says: ``F.separate``, what follows, ``F.stack``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812


def stacked_again(x: Any) -> Any:
    return F.stack(F.separate(x, axis=1), axis=0)


def stacked_last(x: Any) -> Any:
    return F.stack(list(F.separate(x, axis=-3)), axis=-1)


def joined(x: Any) -> Any:
    rows = F.separate(x)
    return F.concat(rows, axis=0), F.concat(rows), F.vstack(list(rows))


def walked(x: Any) -> Any:
    return F.stack([F.relu(row) * 2 for row in F.separate(x)])


def counted(x: Any) -> Any:
    rows = F.separate(x)
    return rows[0] + rows[-1] * len(rows)


@pytest.mark.parametrize("function", [stacked_again, stacked_last, joined, walked, counted])
def test_lists_from_separate_compute_what_they_do_eagerly(function: Any) -> None:
    model = hagane.capture(function, "float32[n, t, 3]")
    session = hagane.InferenceSession(model)
    name = session.get_inputs()[0].name
    for sizes in ((4, 5), (1, 2), (3, 1)):
        x = np.random.default_rng(0).standard_normal((*sizes, 3)).astype("f")
        expected = function(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for ours, theirs in zip(session.run(None, {name: x}), expected, strict=True):
            np.testing.assert_allclose(ours, theirs.array, rtol=1e-5)


@pytest.mark.parametrize("kind", ["NStepLSTM", "NStepBiGRU", "NStepRNNReLU"])
def test_recurrent_layers_over_separated_rows_are_one_graph_for_all_sizes(kind: str) -> None:
    np.random.seed(0)
    link = getattr(L, kind)(2, 3, 4, 0.5)
    first = (None, None) if "LSTM" in kind else (None,)

    def read(x: Any) -> Any:
        last = link(*first, list(F.separate(x, axis=0)))
        return F.stack(last[-1], axis=0), last[0]

    with hagane.using_config("train", False):
        session = hagane.InferenceSession(hagane.capture(read, "float32[n, t, 3]"))
        name = session.get_inputs()[0].name
        for sizes in ((4, 5), (1, 2), (3, 1)):
            x = np.random.default_rng(0).standard_normal((*sizes, 3)).astype("f")
            for ours, theirs in zip(session.run(None, {name: x}), read(x), strict=True):
                np.testing.assert_allclose(ours, theirs.array, rtol=1e-4, atol=1e-6)
