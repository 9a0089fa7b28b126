"""The models run in PyTorch; the mistakes in them are found by PyTorch where they should be."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Mapping
from types import FrameType
from typing import Any

import pytest

from .case import number
from .catalogue import TORCH, Case, draw_inputs, draw_sizes, load
from .mistakes_torch import MISTAKES, Kind, Mistake

torch = pytest.importorskip("torch")

DRAWS = 3
CASES = {case.name: case for case in TORCH}


def name(mistake: Mistake) -> str:
    return f"{mistake.case}-{mistake.new}".replace("\n", " ")


def run(case: Case, sizes: Mapping[str, int], seed: int, source: str | None = None) -> Any:
    torch.manual_seed(seed)
    module = load(case.path, source)
    model = eval(case.make, module.__dict__)
    return getattr(model, case.method)(**draw_inputs(case, sizes, seed))


def assert_raises(mistake: Mistake, sizes: Mapping[str, int], source: str) -> None:
    """Running `source` raises, and the last frame in the model's file is at the right line."""
    case = CASES[mistake.case]
    with pytest.raises(Exception) as raised:
        run(case, sizes, 0, source)
    frames = traceback.extract_tb(raised.value.__traceback__)
    numbers = [frame.lineno for frame in frames if frame.filename == str(case.path)]
    assert numbers, raised.value
    assert numbers[-1] == mistake.line_number(source), repr(raised.value)


@pytest.mark.parametrize("case", TORCH, ids=lambda case: case.name)
def test_a_model_runs_at_the_sizes_that_its_case_allows(case: Case) -> None:
    for seed in range(DRAWS):
        run(case, draw_sizes(case, seed), seed)


@pytest.mark.parametrize("case", TORCH, ids=lambda case: case.name)
def test_a_case_draws_the_symbols_that_its_inputs_name(case: Case) -> None:
    names = {
        node.id
        for text in case.inputs.values()
        for node in ast.walk(ast.parse(text, mode="eval"))
        if isinstance(node, ast.Name)
    }
    assert names - {"list", "tuple", "float32", "float64", "int64", "bool"} == set(case.sizes)


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m.fails is not None], ids=name)
def test_a_mistake_fails_in_pytorch_at_its_line(mistake: Mistake) -> None:
    assert mistake.fails is not None
    assert_raises(mistake, mistake.fails, mistake.apply(CASES[mistake.case].path.read_text()))


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m.meta is not None], ids=name)
def test_a_clash_with_a_gpu_fails_with_the_meta_device_in_its_place(mistake: Mistake) -> None:
    assert mistake.meta is not None
    source = mistake.apply(CASES[mistake.case].path.read_text())
    assert source.count('"cuda"') == 1
    assert_raises(mistake, mistake.meta, source.replace('"cuda"', '"meta"'))


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m.passes is not None], ids=name)
def test_a_mistake_stays_unseen_at_some_sizes(mistake: Mistake) -> None:
    assert mistake.passes is not None
    case = CASES[mistake.case]
    run(case, mistake.passes, 0, mistake.apply(case.path.read_text()))


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m.becomes is not None], ids=name)
def test_a_mistake_that_never_raises_gives_a_tensor_another_shape(mistake: Mistake) -> None:
    assert mistake.becomes is not None
    assert mistake.passes is not None
    case, sizes = CASES[mistake.case], mistake.passes
    variable, meant, actual = mistake.becomes

    def shape_of_variable(source: str) -> list[int]:
        shapes: list[list[int]] = []

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            value = frame.f_locals.get(variable)
            if event == "return" and isinstance(value, torch.Tensor):
                shapes.append(list(value.shape))
            return trace if frame.f_code.co_filename == str(case.path) else None

        previous = sys.gettrace()
        sys.settrace(trace)
        try:
            run(case, sizes, 0, source)
        finally:
            sys.settrace(previous)
        (shape,) = shapes
        return shape

    def evaluate(shape: str) -> list[int]:
        parsed = ast.parse(shape, mode="eval").body
        assert isinstance(parsed, ast.List)
        return [number(dim, sizes) for dim in parsed.elts]

    source = case.path.read_text()
    assert shape_of_variable(source) == evaluate(meant)
    assert shape_of_variable(mistake.apply(source)) == evaluate(actual)


def test_a_mistake_says_what_it_does() -> None:
    for mistake in MISTAKES:
        ways = [mistake.fails, mistake.meta, mistake.becomes]
        assert sum(way is not None for way in ways) == 1, name(mistake)
        assert (mistake.meta is not None) == (mistake.kind is Kind.DEVICE), name(mistake)


def test_every_kind_of_mistake_is_there_and_every_model_has_some() -> None:
    assert {mistake.kind for mistake in MISTAKES} == set(Kind)
    assert {CASES[mistake.case].file for mistake in MISTAKES} == {case.file for case in TORCH}
