"""Derivatives that a program asks for by function: their shapes, beside PyTorch's."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from .test_training_context import checked  # noqa: E402

TEXT = """
from torch.autograd import functional as AF
x, y = torch.ones(3), torch.ones(2, 4)
both = lambda a, b: a.sum() * b
assert AF.jacobian(lambda a: torch.outer(a, a), x).shape == (3, 3, 3)
assert [j.shape for j in AF.jacobian(both, (x, y))] == [(2, 4, 3), (2, 4, 2, 4)]
assert AF.jacobian(lambda a: (a, a.sum()), (x,))[1][0].shape == (3,)
assert AF.hessian(lambda a: (a**3).sum(), y).shape == (2, 4, 2, 4)
assert AF.hessian(lambda a, b: a.sum() * b.sum(), (x, y))[0][1].shape == (3, 2, 4)
assert AF.vjp(torch.outer, (x, x), torch.ones(3, 3))[1][0].shape == (3,)
assert AF.jvp(lambda a: torch.outer(a, a), x, x)[1].shape == (3, 3)
assert AF.hvp(lambda a: (a**3).sum(), y, y)[1].shape == (2, 4)
"""


def test_derivatives_have_the_shapes_of_pytorch(tmp_path: Path) -> None:
    exec(TEXT, {"torch": torch})
    report = checked(tmp_path, TEXT)
    assert report.exit_code == 0, (report.errors, report.unknown)


def test_a_hessian_is_of_one_number(tmp_path: Path) -> None:
    wrong = TEXT + "AF.hessian(lambda a: a**3, y)\n"
    (error,) = checked(tmp_path, wrong).errors
    assert "hessian: expected one number as the function's result" in error.message
    with pytest.raises(RuntimeError):
        exec(wrong, {"torch": torch})


OWN = """
import torch

class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(a)
        return x * a

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return Times.apply(g, a), None

y = Times.apply(torch.ones(3, requires_grad=True), torch.ones(3))
assert y.shape == (3,)
"""


def test_a_backward_pass_that_applies_its_own_function_has_an_end(tmp_path: Path) -> None:
    report = checked(tmp_path, OWN)
    assert report.exit_code == 0, (report.errors, report.unknown)


PARTLY = """
import torch

class Partly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        if any(ctx.needs_input_grad[:1]):
            raise RuntimeError("no gradient of x")
        y = x * scale
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return None, g * ctx.saved_tensors[0]

y = Partly.apply(torch.ones(3), torch.ones(3, requires_grad=True))
assert y.shape == (3,)
"""


def test_a_forward_pass_may_ask_which_gradients_are_needed(tmp_path: Path) -> None:
    exec(PARTLY, {"torch": torch})
    report = checked(tmp_path, PARTLY)
    assert report.exit_code == 0, (report.errors, report.unknown)
    told = [note.message for note in report.notices]
    assert any("Partly.forward asks which gradients are needed" in text for text in told), told
