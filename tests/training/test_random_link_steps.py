"""Random programs that train links: compiled steps leave what ``optimizer.update`` does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.training.random_link_steps import Unfit, differences, program

# Short ones: globals and attributes that change, frozen layers, decay without gradients.
FEW = (4, 49, 93)


@pytest.mark.filterwarnings("ignore")  # of divisions and the like, which programs do not mind
@pytest.mark.parametrize(
    "seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(200, 240))]
)
def test_ten_steps_of_a_random_program_are_the_optimizers(seed: int, tmp_path: Path) -> None:
    text = program(seed)
    try:
        found = differences(text, tmp_path, np.float64, 1e-8)
    except Unfit as error:
        pytest.skip(f"it does not train: {error}")
    assert not found, f"{found}\n{text}"


def test_programs_follow_from_their_seed() -> None:
    assert program(7) == program(7)
    assert len({program(seed) for seed in range(3)}) == 3
