"""A list that a loop only appends to is a scan output; one that it reads stays a state."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import hagane

from .programs import TYPE
from .test_programs import compare

pytestmark = pytest.mark.filterwarnings("ignore")


def mapped(x: Any) -> Any:
    return torch.stack([torch.exp(row) for row in x])


def begun(x: Any) -> Any:
    out = [x[0].sum()]
    for row in x:
        out.append(row.sum())
        out.append(row.max())
    return torch.stack(out)


def sized(x: Any) -> Any:
    out = []
    for row in x:
        out.append(x.sum(1) * row[0])
    return torch.stack(out), len(out)


def nested(x: Any) -> Any:
    out = []
    for i in range(x.shape[0]):
        for _ in x:
            out.append(x[:, 0] * i)
    return torch.stack(out)


def paired(x: Any) -> Any:
    states, places = [], []
    state = x[0]
    for row in x:
        state = state + row
        states.append((state, state.sum()))
        places.append(state.argmax())
    return states[-1][0], torch.stack(places), len(states)


def looked_at(x: Any) -> Any:
    out = []
    for row in x:
        out.append(row)
        out.append(row * 2 if len(out) > 2 else row)
    return torch.stack(out)


def chosen(x: Any) -> Any:
    out = []
    for row in x:
        out.append(row)
        if row.sum() > 0:
            out.append(row * 2)
    return torch.stack(out)


def last_seen(x: Any) -> Any:
    out = [x[0]]
    for row in x:
        out.append(out[-1] * 0.5 + row)
    return torch.stack(out)


def loops_of(model: Any) -> list[tuple[int, int]]:
    """Return the numbers of states and of scan outputs of each loop."""
    nodes = [node for node in model.graph.all_nodes() if node.op_type == "Loop"]
    found = [(len(node.inputs) - 2, len(node.outputs)) for node in nodes]
    return [(states, outputs - states) for states, outputs in found]


@pytest.mark.parametrize(
    ("function", "loops"),
    [
        (mapped, [(0, 1)]),
        (begun, [(0, 1)]),
        (sized, [(0, 1)]),
        (paired, [(1, 3)]),
        (looked_at, [(1, 0)]),
        (chosen, [(1, 0)]),
        (last_seen, [(1, 0)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_list_that_is_only_appended_to_is_no_state_of_the_loop(
    function: Any, loops: list[tuple[int, int]]
) -> None:
    torch.manual_seed(0)
    model = hagane.capture(function, TYPE)
    assert loops_of(model) == loops
    compare(function, model, [torch.randn(rows, 3) for rows in (1, 2, 5)])


def test_an_inner_loop_appends_to_the_list_of_the_outer_one() -> None:
    torch.manual_seed(0)
    model = hagane.capture(nested, TYPE)
    assert sorted(loops_of(model)) == [(0, 1), (1, 0)]
    compare(nested, model, [torch.randn(rows, 3) for rows in (1, 2, 5)])


def test_no_iteration_leaves_a_list_of_items_of_the_right_size() -> None:
    def counted(x: Any, y: Any) -> Any:
        out = [y]
        for row in x:
            out.append(y * row[0])
        return torch.stack(out)

    model = hagane.capture(counted, x="float32[rows, 3]", y="float32[items]")
    session = hagane.InferenceSession(hagane.graph.to_proto(model).SerializeToString())
    for rows in (0, 2):
        x, y = torch.ones(rows, 3), torch.ones(4)
        (found,) = session.run(None, {"x": x.numpy(), "y": y.numpy()})
        assert found.shape == (rows + 1, 4)


def decoded(x: Any) -> Any:
    out = []
    state = x[0]
    while len(out) < 6:
        state = torch.tanh(state * 1.5 + x[-1])
        token = state.argmax()
        if state[0] > 0.9:
            break
        out.append(token)
    return torch.stack([*out, state.argmax()]), state, len(out)


def kept(x: Any) -> Any:
    out, others = [], [x[0].sum()]
    for row in x:
        total = row.sum()
        if total > 0:
            out.append(total)
        if row[0] < 0 and len(others) < 3:
            others.append(total)
    return torch.stack([*out, x.sum()]), torch.stack(others)


@pytest.mark.parametrize(("function", "lists"), [(decoded, 1), (kept, 2)])
def test_a_list_that_some_iterations_append_to_is_chosen_from_a_scan(
    function: Any, lists: int
) -> None:
    model = hagane.capture(function, TYPE)
    ((_, scans),) = [found for found in loops_of(model) if found[1]]
    assert scans == 2 * lists
    torch.manual_seed(0)
    compare(function, model, [torch.randn(rows, 3) for rows in (1, 2, 5, 9, 3, 4)])


def reread(x: Any) -> Any:
    out, state = [x[0]], x[0]
    chosen = x[0, 0] > 0
    for row in x:
        if chosen:
            out.append(state)
            state = out[-1].clamp(-1, 1) + row
    return torch.stack(out).sum(0), state, len(out)


def test_a_list_whose_end_is_read_after_it_grew_stays_a_state() -> None:
    model = hagane.capture(reread, TYPE)
    torch.manual_seed(0)
    compare(reread, model, [torch.randn(rows, 3) for rows in (1, 2, 5, 4, 3)])


def test_a_loop_that_stops_at_the_length_of_its_list_has_a_limit() -> None:
    model = hagane.capture(decoded, TYPE)
    (loop,) = (node for node in model.graph.all_nodes() if node.op_type == "Loop")
    assert loop.inputs[0] is not None
