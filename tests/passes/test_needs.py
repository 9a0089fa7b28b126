"""Passes are left out only where they would change nothing."""

from __future__ import annotations

from typing import Any

import pytest

import hagane.passes
from hagane.graph import load, to_text
from hagane.ops import infer_types
from hagane.passes import FOREIGN, PASSES, WRITTEN_IN_OTHERS, optimize
from hagane.passes.legalise import legalise
from tests.conformance.cases import exclusion, node_cases


class _Everything(frozenset[str]):
    """A set that has every operator."""

    def __contains__(self, item: object) -> bool:
        return True

    def __rand__(self, other: object) -> Any:
        return other


def _outcome(case: Any) -> tuple[list[tuple[str, ...]], str]:
    model = load(case.model)
    legalise(model)
    changes = optimize(model.graph, infer_types(model))
    return [change.nodes for change in changes], to_text(model)


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 25])
def test_graphs_come_out_the_same_when_no_pass_is_left_out(
    every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [
        case
        for case in node_cases()
        if case.name.endswith("_expanded") and exclusion(case.name) is None
    ][::every]
    assert len(cases) >= 10
    known = [_outcome(case) for case in cases]
    monkeypatch.setattr(hagane.passes, "_operators", lambda graphs: _Everything())
    assert all(one.has_work(_Everything()) for one in PASSES if one.name != "expand_composed")
    assert [_outcome(case) for case in cases] == known


def test_operators_that_are_written_in_others_are_asked_for() -> None:
    (one,) = (one for one in PASSES if one.name == "expand_composed")
    assert one.has_work({FOREIGN})
    assert all(one.has_work({name}) for name in WRITTEN_IN_OTHERS)
    assert not one.has_work({"Conv", "Relu"})
