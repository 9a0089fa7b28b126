"""Values that are None before a loop: there behind its first iteration, or only behind some."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import variable
from hagane.errors import CaptureError, HaganeError
from hagane.graph import to_proto

from .programs import TYPE
from .test_programs import compare


def largest(x: Any) -> Any:
    best = None
    for i in range(x.shape[0]):
        if best is None or x[i].sum() > best.sum():
            best = x[i]
    return best


def changed(x: Any) -> Any:
    before, total = None, torch.zeros(())
    for row in x:
        if before is not None:
            total = total + (row - before).abs().sum()
        before = row
    return total


def started_inside(x: Any) -> Any:
    state, out = None, []
    for row in x:
        if state is None:
            state = torch.zeros(x.shape[1])
        state = torch.tanh(state + row)
        out.append(state)
    return torch.stack(out), state


def grown(x: Any) -> Any:
    whole = None
    for i in range(x.shape[0]):
        part = x[: i + 1]
        whole = part if whole is None else torch.cat([whole, part])
    return whole


def chosen_rows(x: Any) -> Any:
    kept = None
    for row in x:
        rows = x[x[:, 0] >= row[0]]
        kept = rows if kept is None else torch.cat([kept, rows])
    return kept.sum(0)


def two_before(x: Any) -> Any:
    last, older = None, None
    for row in x:
        older = last if last is not None else x[0] * 0
        last = row
    return older + last


def seldom(x: Any) -> Any:
    last = None
    for row in x:
        if row[0] < 0:
            continue
        last = row if last is None else last * 0.5 + row
    return x.sum() if last is None else last.sum()


def until(x: Any) -> Any:
    last = None
    for row in x:
        if row.sum() > 1:
            break
        last = row * 2
    return x.sum() if last is None else last.sum()


def longest_start(x: Any) -> Any:
    most, i = None, 0
    while i < x.shape[0] and x[i].sum() < 2:
        most = x[i] if most is None else torch.maximum(most, x[i])
        i += 1
    return torch.zeros(x.shape[1]) if most is None else most


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function",
    [
        largest, changed, started_inside, grown, chosen_rows, two_before,
        seldom, until, longest_start,
    ],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_values_that_a_loop_makes(function: Any) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(rows, 3) for rows in (1, 2, 5, 7, 3, 1)]
    compare(function, hagane.capture(function, TYPE), inputs)


class Words(hagane.Chain):
    """A recurrent link over sentences of any length."""

    def __init__(self, cell: hagane.Link) -> None:
        super().__init__()
        with self.init_scope():
            self.words, self.cell, self.out = L.EmbedID(9, 5), cell, L.Linear(5, 9)

    def forward(self, ids: Any) -> Any:
        self.cell.reset_state()
        found = [self.out(self.cell(self.words(ids[:, t]))) for t in range(ids.shape[1])]
        return F.stack(found, axis=1)


CELLS: tuple[Any, ...] = (
    L.LSTM, L.StatefulGRU, L.StatefulPeepholeLSTM, L.StatefulMGU, L.StatefulZoneoutLSTM,
)  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_links_begin_without_a_state_in_sentences_of_any_length(cell: Any) -> None:
    net = Words(cell(5, 5))
    with hagane.using_config("train", False):
        model = hagane.capture(net, "int64[batch, length]")
        sessions: list[Any] = [
            hagane.InferenceSession(model),
            onnxruntime.InferenceSession(to_proto(model).SerializeToString()),
        ]
        for shape in ((2, 5), (1, 1), (3, 2)):
            ids = np.random.randint(0, 9, shape)
            expected = net(ids).array
            for session in sessions:
                found = session.run(["output"], {"ids": ids})[0]
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def gathered(x: Any) -> Any:
    """A state that a class makes where there is none, called by the module that defines it."""
    states: list[Any] = [None]
    found = []
    for row in range(x.shape[0]):
        state = states[-1]
        if state is None:
            state = variable.Variable(np.zeros(3, "f"))
        states = [F.tanh(state + x[row])]
        found.append(states[0])
    return F.stack(found)


def test_a_class_of_the_framework_may_be_called_by_its_module() -> None:
    session = hagane.InferenceSession(hagane.capture(gathered, "float32[rows, 3]"))
    for rows in (1, 4):
        x = np.random.randn(rows, 3).astype("f")
        (found,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, gathered(x).array, rtol=1e-5, atol=1e-6)


class Seldom(hagane.Chain):
    """A state that stays None where there is one word."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.cell = L.LSTM(3, 3)

    def forward(self, x: Any) -> Any:
        self.cell.reset_state()
        total = 0
        for i in range(x.shape[1] - 1):
            total = total + F.sum(self.cell(x[:, i]))
        return total + F.sum(x)


@pytest.mark.long
def test_a_state_that_no_iteration_may_set_is_named() -> None:
    wanted = r"the attribute 'cell.c' is None before the call and .* \| None after it"
    with pytest.raises(CaptureError, match=wanted):
        hagane.capture(Seldom(), "float32[batch, length, 3]")


def best_fit(x: Any) -> Any:
    best = None
    for height, width in ((1, 2), (3, 4)):
        if x[0] * height > 1:
            best = (height, width)
    height, width = best
    return x * height + width


def first_item(x: Any) -> Any:
    best = None
    for height, width in ((1, 2), (3, 4)):
        if x[0] * height > 1:
            best = [height, width]
    return x * best[0] + sum(best)


def last_match(x: Any) -> Any:
    best = None
    for row in x:
        if row > 1:
            best = row
    return x * best.item() + (best - 1)


def caught(x: Any) -> Any:
    best = None
    if x[0] > 1:
        best = (2, 3)
    try:
        a, b = best
        return x * a + b
    except TypeError:
        return x - 1


@pytest.mark.parametrize("program", [best_fit, first_item, last_match, caught])
def test_what_fails_with_none_is_for_the_other_paths(program: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float32[n]"))
    for value in (1.5, 0.5) if program is not last_match else (1.5,):
        x = torch.tensor([value, 0.25, 1.75])
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], program(x), rtol=1e-6)
    if program is not caught:
        with pytest.raises(HaganeError, match="TypeError"):
            session.run(None, {"x": np.zeros(3, np.float32)})
