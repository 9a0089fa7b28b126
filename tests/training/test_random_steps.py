"""Random programs that train: compiled steps leave what PyTorch's own do."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from tests.training.random_programs import loaded
from tests.training.random_steps import Unfit, differences, program

# Short ones with detached values, frozen groups, decay that changes, clipping and accumulation.
FEW = (132, 177, 281, 327, 350)


@pytest.mark.filterwarnings("ignore")  # of schedules and the like, which programs do not mind
@pytest.mark.parametrize(
    "seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(300, 360))]
)
def test_ten_steps_of_a_random_program_are_pytorchs(seed: int, tmp_path: Path) -> None:
    text = program(seed)
    try:
        found = differences(loaded(text, tmp_path), torch.float64, 1e-8)
    except Unfit as error:
        pytest.skip(f"PyTorch does not train it: {error}")
    assert not found, f"{found}\n{text}"


def test_programs_follow_from_their_seed() -> None:
    assert program(7) == program(7)
    assert len({program(seed) for seed in range(3)}) == 3
