"""The models in Chainer's style and their mistakes, as far as one sees without Chainer.

``tests/outside/chainer_oracle.py`` runs them on Chainer.
"""

from __future__ import annotations

import ast

import numpy as np
import pytest

from .case import Case
from .catalogue import TORCH
from .catalogue_chainer import CHAINER
from .inputs import FUNCTIONS, draw_arrays
from .mistakes_chainer import MISTAKES, Mistake

CASES = {case.name: case for case in CHAINER}
HEADS = {"list", "tuple", "float32", "int32"}


def name(mistake: Mistake) -> str:
    return f"{mistake.case}-{mistake.new}".replace("\n", " ")


@pytest.mark.parametrize("case", CHAINER, ids=lambda case: case.name)
def test_a_case_names_a_method_of_its_file_and_its_arguments(case: Case) -> None:
    class_name, _, method = case.target.partition(".")
    names = {method} if method else {"forward", "__call__"}
    tree = ast.parse(case.path.read_text())
    (class_,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name)
    (function,) = (n for n in class_.body if isinstance(n, ast.FunctionDef) and n.name in names)
    _, *arguments = (argument.arg for argument in function.args.args)
    assert list(case.inputs) == arguments[: len(case.inputs)]
    assert len(arguments) - len(case.inputs) <= len(function.args.defaults)


@pytest.mark.parametrize("case", CHAINER, ids=lambda case: case.name)
def test_a_case_has_sizes_for_the_symbols_that_its_inputs_name(case: Case) -> None:
    symbols = {
        node.id
        for text in case.inputs.values()
        for node in ast.walk(ast.parse(text, mode="eval"))
        if isinstance(node, ast.Name)
    }
    assert symbols - HEADS - set(FUNCTIONS) == set(case.sizes)


@pytest.mark.parametrize("mistake", MISTAKES, ids=name)
def test_a_mistake_applies_at_one_place_and_names_one_line(mistake: Mistake) -> None:
    case = CASES[mistake.case]
    source = mistake.apply(case.path.read_text())
    ast.parse(source)
    assert mistake.line_number(source) > 0
    for sizes in (mistake.fails, mistake.passes or mistake.fails):
        assert sizes is not None
        assert set(sizes) == set(case.sizes)


def test_every_model_in_the_style_of_chainer_has_mistakes() -> None:
    assert {CASES[mistake.case].file for mistake in MISTAKES} == {case.file for case in CHAINER}


def test_no_two_cases_share_a_name() -> None:
    names = [case.name for case in (*CHAINER, *TORCH)]
    assert len(set(names)) == len(names)


def test_inputs_are_drawn_by_their_types() -> None:
    case = Case(
        "drawn",
        "",
        "",
        "",
        {
            "x": "float32[n, ceil((n + 1) / 2) * 2, 3]",
            "y": "list[int32[n], int32[m]]",
            "z": "list[float64[m], n]",
            "p": "tuple[bool[2], 2 * m - 1]",
            "w": "int64[50]",
        },
        {"n": (2,), "m": (4,)},
        {"w": 3},
    )
    drawn = draw_arrays(case, {"n": 2, "m": 4}, seed=1)
    assert (drawn["x"].shape, drawn["x"].dtype) == ((2, 4, 3), np.float32)
    assert [(y.shape, y.dtype) for y in drawn["y"]] == [((2,), np.int32), ((4,), np.int32)]
    assert [(z.shape, z.dtype) for z in drawn["z"]] == [((4,), np.float64)] * 2
    flags, number = drawn["p"]
    assert (flags.shape, flags.dtype, number) == ((2,), np.bool_, 7)
    assert set(drawn["w"].tolist()) == {0, 1, 2}
    again = draw_arrays(case, {"n": 2, "m": 4}, seed=1)
    np.testing.assert_array_equal(again["x"], drawn["x"])
