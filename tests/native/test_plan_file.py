"""Plans as bytes: read back as they were written, or refused."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from hagane.native.ready.plan_file import (
    FORMAT,
    LARGEST,
    MAGIC,
    Plan,
    PlanArgument,
    PlanConstant,
    PlanPart,
    PlanProgram,
    PlanStep,
    plan_bytes,
    read_plan,
    type_name,
)
from hagane.native.ready.rows import ARRAYS, COUNTS, TYPES

NAMES = ("x", "", "入力", 'a "quoted" \\ name', "lone \udc80 byte")


def drawn(seed: int) -> Plan:
    """Return a plan of drawn numbers."""
    random = np.random.default_rng(seed)

    def numbers(most: int) -> tuple[int, ...]:
        return tuple(random.integers(-(2**62), 2**62, random.integers(0, most)).tolist())

    def slots() -> tuple[int, ...]:
        return tuple(random.integers(0, 9, random.integers(0, 4)).tolist())

    def argument() -> PlanArgument:
        most = numbers(5)
        least = tuple(number // 2 for number in most)
        return PlanArgument(str(random.choice(NAMES)), int(random.integers(1, 17)), least, most)

    def constant() -> PlanConstant:
        return PlanConstant(int(random.integers(9)), 1, slots(), int(random.integers(1 << 40)))

    def part() -> PlanPart:
        kernels = int(random.integers(0, 4))
        arrays = {
            name: random.integers(-9, 9, random.integers(1, 30)).astype(
                np.int64 if name == "constants" else np.int32
            )
            for name in ARRAYS
        }
        counts = {name: int(random.integers(100)) for name in COUNTS} | {"kernels": kernels}
        texts = tuple(str(random.choice(NAMES)) for _ in range(kernels))
        functions = random.integers(-1, 5, kernels + 1).astype(np.int32)
        places = random.integers(-1, 1 << 40, 3)
        return PlanPart(counts, arrays, functions, texts, texts[::-1], places)

    steps = tuple(PlanStep(int(random.integers(3)), slots(), slots()) for _ in range(3))
    constants = tuple(constant() for _ in range(random.integers(3)))
    bounds = numbers(6)
    programs = tuple(
        PlanProgram(int(random.integers(99)), steps[:n], constants, slots(), bounds, bounds)
        for n in range(random.integers(3))
    )
    arguments = tuple(argument() for _ in range(random.integers(3)))
    parts = tuple(part() for _ in range(random.integers(3)))
    return Plan(arguments, arguments[:1], programs, parts, NAMES[: seed % 4], LARGEST)


def content(plan: Plan) -> np.ndarray:
    return np.frombuffer(bytearray(plan_bytes(plan)), np.uint8)


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_is_read_back_as_it_was_written(seed: int) -> None:
    plan = drawn(seed)
    found = read_plan(content(plan))
    assert found._replace(parts=()) == plan._replace(parts=())
    assert len(found.parts) == len(plan.parts)
    for left, right in zip(found.parts, plan.parts, strict=True):
        assert (left.counts, left.labels, left.failures) == (
            right.counts,
            right.labels,
            right.failures,
        )
        np.testing.assert_array_equal(left.functions, right.functions)
        np.testing.assert_array_equal(left.weights, right.weights)
        for name in ARRAYS:
            np.testing.assert_array_equal(left.arrays[name], right.arrays[name])
            assert left.arrays[name].dtype == right.arrays[name].dtype


def test_a_plan_of_another_version_or_length_is_refused() -> None:
    made = content(drawn(3))
    words = made.view(np.int64)
    assert words[:2].tolist() == [MAGIC, FORMAT]
    with pytest.raises(ValueError, match="bytes has"):
        read_plan(made[:-8])
    words[1] += 1
    with pytest.raises(ValueError, match="no plan of this version"):
        read_plan(made)


def test_positions_beyond_the_end_are_refused() -> None:
    refused = 0
    for seed in range(20):
        for at in range(4, 14):
            made = content(drawn(seed))
            made.view(np.int64)[at] = 1 << 40
            with pytest.raises(ValueError, match="of a plan of"):
                read_plan(made)
            refused += 1
    assert refused == 200


def test_element_types_have_the_numbers_of_onnx() -> None:
    for name, number in TYPES.items():
        assert ir.DataType(number).numpy().name == name
        assert type_name(number) == name
    with pytest.raises(ValueError, match="element type 0"):
        type_name(0)
