"""The models run in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from .catalogue import TORCH, Case, draw_inputs, draw_sizes, load

torch = pytest.importorskip("torch")

DRAWS = 3


def run(case: Case, sizes: dict[str, int], seed: int, source: str | None = None) -> Any:
    torch.manual_seed(seed)
    module = load(case.path, source)
    model = eval(case.make, module.__dict__)
    return getattr(model, case.method)(**draw_inputs(case, sizes, seed))


@pytest.mark.parametrize("case", TORCH, ids=lambda case: case.name)
def test_a_model_runs_at_the_sizes_that_its_case_allows(case: Case) -> None:
    for seed in range(DRAWS):
        run(case, draw_sizes(case, seed), seed)
