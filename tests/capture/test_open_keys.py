"""Items at keys that only a run knows; writes of values that are lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError


class Experts(nn.ModuleDict):
    """As in SwitchTransformers: experts by names, each for the rows that chose it."""

    def __init__(self) -> None:
        super().__init__()
        for i in range(3):
            self[f"expert_{i}"] = nn.Linear(4, 4)

    def forward(self, x: Any, chosen: Any) -> Any:
        found = torch.zeros_like(x)
        for k in torch.nn.functional.one_hot(chosen, 3).sum(0).nonzero():
            rows = (chosen == k[0]).nonzero()[:, 0]
            found.index_add_(0, rows, self[f"expert_{k[0]}"](x[rows]))
        return found


class Members(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"one-2": nn.Linear(4, 4), "one-10": nn.Linear(4, 4)})
        self.layers["02"] = nn.Identity()  # no number is written like this
        self.factors = {"2": 3.0, "10": 5.0}
        self.terms = {10: 7.0, 2: 1.0}

    def forward(self, x: Any, chosen: Any) -> Any:
        place = int(chosen[0]) % 2 * 8 + 2
        name = f"one-{place}"
        return self.layers[name](x) * self.factors[str(place)] + self.terms[place]


@pytest.mark.parametrize("make", [Experts, Members])
def test_texts_with_numbers_of_the_data_are_keys(make: Any) -> None:
    module = make().eval()
    session = hagane.InferenceSession(hagane.capture(module, "float32[n, 4]", "int64[n]"))
    for chosen in ([0, 2, 0, 2, 0], [1], [2, 1, 0]):
        x = torch.randn(len(chosen), 4, generator=torch.Generator().manual_seed(len(chosen)))
        feed = {"x": x.numpy(), "chosen": np.array(chosen)}
        (found,) = session.run(None, feed)
        with torch.no_grad():
            expected = module(x, torch.tensor(chosen))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def added(x: Any, y: Any) -> Any:
    x = x.clone()
    x.add_({"a": 1.0}.get(f"{y[0]}", 2.0))
    return x


def put_out(x: Any, y: Any) -> Any:
    made = torch.zeros_like(x)
    torch.add(x, {"a": 1.0}.get(f"{y[0]}", 2.0), out=made)
    return made


def filled(x: Any, y: Any) -> Any:
    made = np.zeros(3, np.float32)
    made.fill({"a": 1.0}.get(f"{y[0]}", 2.0))
    return x + torch.from_numpy(made)


@pytest.mark.parametrize("function", [added, put_out, filled])
def test_a_write_of_a_value_that_is_not_known_is_refused(function: Any) -> None:
    told = r"py:\d+: '[\w.]+' of a dictionary asked for a key that is not known, which only a"
    with pytest.raises(CaptureError, match=told):
        hagane.capture(function, "float32[3]", "int64[3]")


def absent_is_handled(x: Any, y: Any) -> Any:
    try:
        return x * {"e_0": 2.0, "e_1": 3.0}[f"e_{y[0]}"]
    except KeyError:
        return -x


def absent_in_a_loop(x: Any, y: Any) -> Any:
    prices = {0: 1.0, 4: 2.0}
    for k in y:
        try:
            x = x * prices[int(k)]
        except (IndexError, KeyError):
            x = x - 1
        finally:
            x = x + 0.5
    return x


def absent_is_not_handled(x: Any, y: Any) -> Any:
    try:
        return x * {"e_0": 2.0, "e_1": 3.0}[f"e_{y[0]}"]
    except ValueError:
        return x


@pytest.mark.parametrize("program", [absent_is_handled, absent_in_a_loop, absent_is_not_handled])
def test_a_key_that_is_absent_is_handled_where_the_program_does(program: Any) -> None:
    compiled = hagane.compile(program, fullgraph=True)
    for places in ([0, 1, 4], [1, 1, 0], [4, 0, 3]):
        x, y = torch.tensor([1.0, -2.0]), torch.tensor(places)
        if program is absent_is_not_handled and places[0] == 4:
            with pytest.raises(KeyError, match="e_4"):
                compiled(x, y)
        else:
            torch.testing.assert_close(compiled(x, y), program(x, y))
