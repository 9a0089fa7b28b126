"""Updates of parameters as loops in C, made of the rules of optimizers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

from hagane.machine import NoCompiler
from hagane.training.step import TorchStep, fused
from hagane.training.step.fused import FusedUpdates, body_of
from hagane.training.step.modules.large import _model
from hagane.training.step.rules import rule_of

OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=1e-2, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=1e-2, maximize=True),
    "NAdam": lambda p: optim.NAdam(p, lr=1e-2),
    "RAdam": lambda p: optim.RAdam(p, lr=1e-2),
    "Adamax": lambda p: optim.Adamax(p, lr=1e-2),
    "RMSprop": lambda p: optim.RMSprop(p, lr=1e-3, centered=True, momentum=0.9),
    "Adagrad": lambda p: optim.Adagrad(p, lr=1e-2),
    "Adadelta": lambda p: optim.Adadelta(p, weight_decay=0.1),
}


def followed(name: str, dtype: ir.DataType) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
    """Return the rule's arrays after a step in C, and by its reference kernels."""
    optimizer = OPTIMIZERS[name]([nn.Parameter(torch.zeros(3))])
    rule, group = rule_of(optimizer), optimizer.param_groups[0]
    assert rule is not None
    names = ["p", *(f"p.{state}" for state in rule.states(group))]
    model = _model(rule, 0, group, dtype)
    body = body_of(model.graph, names, "g")
    assert body is not None
    draws = np.random.default_rng(0)
    arrays = [np.asarray(np.abs(draws.standard_normal(77)), dtype.numpy()) for _ in names]
    g = np.asarray(draws.standard_normal(77), dtype.numpy())
    kept = dict(rule.kept or {})
    scalars = {f"group.0.{key}": np.array(value, np.float64)
               for key, value in rule.scalars(group, 3, kept).items()}  # fmt: skip
    states = dict(zip([n.removeprefix("p.") for n in names[1:]], arrays[1:], strict=True))
    at = {key.removeprefix("group.0."): x.astype(dtype.numpy()) for key, x in scalars.items()}
    new, changed = rule.update(arrays[0], g, states, at, group)
    wanted = [new, *(changed[state] for state in states)]
    updates = FusedUpdates([body], 1)
    assert updates.add(0, [*arrays, g], scalars)
    updates.run()
    return updates, arrays, wanted


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loop_in_c_does_the_rule_of_an_optimizer(name: str) -> None:
    _, found, wanted = followed(name, ir.DataType.DOUBLE)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_arrays_that_overlap_or_lie_otherwise_are_left_to_the_graph() -> None:
    updates, (p, m), _ = followed("SGD", ir.DataType.FLOAT)
    scalars = {f"group.0.{name}": np.array(0.1) for name in ("lr", "share", "momentum", "decay")}
    g = np.ones_like(p)
    assert updates.add(0, [p, m, g], scalars)
    assert not updates.add(0, [p, m, p], scalars)
    assert not updates.add(0, [p, m[::-1], g], scalars)
    assert not updates.add(0, [p, m.astype(np.float64), g], scalars)


def test_parameters_that_share_memory_are_updated_one_behind_the_other() -> None:
    optimizer = optim.SGD([nn.Parameter(torch.zeros(3))], lr=1.0)
    rule = rule_of(optimizer)
    model = _model(rule, 0, optimizer.param_groups[0], ir.DataType.FLOAT)
    body = body_of(model.graph, ["p"], "g")
    assert body is not None
    updates = FusedUpdates([body], 2)
    scalars = {f"group.0.{n}": np.array(x)
               for n, x in rule.scalars(optimizer.param_groups[0], 1, {}).items()}  # fmt: skip
    g, other = np.ones((2, 1 << 21), np.float32)
    for _ in range(30):  # (threads lose some in one of three)
        weights = np.zeros_like(g)
        assert updates.add(0, [weights, g], scalars)
        assert updates.add(0, [weights, other], scalars)
        updates.run()
        np.testing.assert_array_equal(weights, -2)


def error(module: Any, x: Any) -> Any:
    return module(x).square().mean()


def test_without_a_compiler_of_its_own_the_graph_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(texts: Any) -> Any:
        raise NoCompiler("none")

    monkeypatch.setattr(fused, "_compiled", absent)
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    other = copy.deepcopy(module)
    ours, theirs = (optim.SGD(one.parameters(), lr=0.1) for one in (module, other))
    step = TorchStep(error, ours)
    x = torch.randn(4, 3)
    for _ in range(2):
        step(module, x)
        theirs.zero_grad()
        error(other, x).backward()
        theirs.step()
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one)
