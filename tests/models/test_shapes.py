"""What the checker infers for every assigned and returned tensor is what PyTorch computes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hagane.checking import Request, check_source

from .case import Case, draw_inputs, load
from .catalogue import TORCH
from .comparing import disagreements
from .tracing import trace_values

torch = pytest.importorskip("torch")
_BY_NAME = {case.name: case for case in TORCH}


def wrong_values(case: Case, sizes: Mapping[str, int]) -> list[str]:
    """Traced values that the checker types otherwise, or not at all."""
    report = check_source(Request(case.path, case.target, case.inputs, case.make, sizes))
    assert not report.errors, report.errors
    module = load(case.path)
    torch.manual_seed(0)
    owner = eval(case.make, vars(module))
    inputs = draw_inputs(case, sizes, 0)
    function = getattr(owner, case.method) if case.method != "forward" else owner
    with torch.no_grad():
        traced = trace_values(case.path, function, **inputs)
    return disagreements(traced, report, case.path.read_text())


@pytest.mark.parametrize("name", _BY_NAME)
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_inferred_shapes_are_those_that_pytorch_computes(name: str, data: st.DataObject) -> None:
    case = _BY_NAME[name]
    drawn = {symbol: st.sampled_from(values) for symbol, values in case.sizes.items()}
    assert wrong_values(case, data.draw(st.fixed_dictionaries(drawn))) == []
