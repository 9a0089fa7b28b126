"""Results of PyTorch's functions lie in memory as PyTorch lays them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import hagane
from hagane.checking import SCRIPT, Request, check_source
from hagane.frontends.libraries.torch.published import layouts

_LAID = {
    "turned": ("(6, 4)", "x.t()"),
    "rolled": ("(2, 3, 4)", "x.permute(1, 2, 0)"),
    "channels last": ("(2, 4, 5, 3)", "x.permute(0, 3, 1, 2)"),
}
_SKIPPED = ("_", "empty", "rand", "bernoulli", "poisson", "normal", "multinomial")
_MORE = (
    "x + x", "x + 1", "1 / x", "x // 2", "x > 0", "-x", "x + x[:1]", "x[..., :1] + x.contiguous()",
    "F.layer_norm(x, x.shape[-1:])", "F.softmax(x, -1)", "F.dropout(x, 0.5)",
    "torch.nn.ReLU()(x)", "torch.nn.Softmax(-1)(x)", "torch.cat([x, x])", "x.contiguous() * x",
    "x.sum(-1, keepdim=True) * x", "x.double(memory_format=torch.contiguous_format)", "x.clone()",
    "torch.full_like(x, 2)", "x.masked_fill(x > 0, 1)", "torch.lerp(x, x, 0.5)",
)  # fmt: skip
_PICTURES = (
    "F.conv2d(x, torch.ones(6, 3, 2, 2))", "torch.nn.Conv2d(3, 6, 2)(x)", "F.max_pool2d(x, 2)",
    "torch.nn.BatchNorm2d(3)(x)", "F.avg_pool2d(x, 2)",
)  # fmt: skip


def _programs(turned: str) -> Iterator[str]:
    """Yield expressions of one tensor that PyTorch computes."""
    x = torch.rand(eval(_LAID[turned][0]))
    x = eval(_LAID[turned][1])
    told = [
        call
        for name, rules in sorted(layouts._rules().items())
        for call in (f"torch.{name}(x)", f"F.{name}(x)", f"x.{name}()")
        if not name.endswith(("_", "forward"))
        and "?" not in rules
        and not any(name.startswith(s) for s in _SKIPPED)
    ]
    for call in (*told, *_MORE, *(_PICTURES if turned == "channels last" else ())):
        try:
            made = eval(call, {"torch": torch, "F": torch.nn.functional, "x": x})
        except (RuntimeError, TypeError, AttributeError, ValueError, IndexError):
            continue
        if not isinstance(made, torch.Tensor) or made.layout != torch.strided:
            continue
        if made.dim() > 1 and made.data_ptr() != x.data_ptr():  # of one fault, one is told
            yield call


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("turned", list(_LAID))
def test_check_finds_views_of_results_that_do_not_lie_in_order(turned: str, tmp_path: Path) -> None:
    shape, make = _LAID[turned]
    calls = list(_programs(turned))
    assert len(calls) > 100
    lines = ["import torch", "import torch.nn.functional as F", f"x = torch.rand{shape}"]
    lines += [f"x = {make}", *(f"y{i} = ({call}).view(-1)" for i, call in enumerate(calls))]
    known: dict[str, Any] = {}
    exec("\n".join(lines[:4]), known)
    expected = set()
    for number, line in enumerate(lines[4:], 5):
        try:
            exec(line, known)
        except RuntimeError:
            expected.add(number)
    file = tmp_path / "script.py"
    file.write_text("\n".join(lines), encoding="utf-8")
    report = check_source(Request(file, SCRIPT))
    found = {one.place.line for one in report.errors if one.code == "view"}
    wrong = [calls[number - 5] for number in sorted(found - expected)]
    missed = [calls[number - 5] for number in sorted(expected - found)]
    assert (wrong, missed) == ([], [])


def test_compiled_results_have_the_strides_of_eager_ones() -> None:
    def function(x: Any) -> Any:
        turned = x.t()
        summed = turned.sum(-1, keepdim=True)
        return turned + 1, turned.relu() * summed, turned.softmax(0), torch.zeros_like(turned)

    x = torch.arange(24.0).reshape(4, 6)
    made = hagane.compile(function, fullgraph=True)(x)
    assert [y.stride() for y in made] == [y.stride() for y in function(x)]
