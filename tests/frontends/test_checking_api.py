"""``hagane.check`` of real objects: attributes are known values, source is interpreted."""

from __future__ import annotations

import pytest

import hagane
from tests.models.case import load
from tests.models.catalogue import TORCH

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.arange(width))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.settings = {"keep": [1, 2]}

    def forward(self, x, mask=None):  # type: ignore[no-untyped-def]
        for layer in self.layers:
            x = torch.relu(layer(x))
        if mask is not None:
            x = x.masked_fill(mask, 0.0)
        return x * self.scale, len(self.settings["keep"])

    def broken(self, x):  # type: ignore[no-untyped-def]
        return self.layers[0](x.transpose(0, 1))


def test_a_model_is_checked_with_types_as_text() -> None:
    report = hagane.check(Net(6), "float32[batch, 6]", mask="bool[batch, 1]")
    assert report.ok, report.errors
    assert report.returned == "(torch.Tensor(dtype=float32, shape=(batch, 6)), int(2))"


def test_types_inside_lists_and_dicts_stand_for_tensors() -> None:
    def total(images, more):  # type: ignore[no-untyped-def]
        return torch.stack([image.sum((1, 2)) for image in images]), more["mask"], more["mode"]

    report = hagane.check(
        total,
        ["float32[3, height, width]", "float32[3, width, height]"],
        more={"mask": "bool[height]", "mode": "plain [text]"},
    )
    assert report.ok, (report.errors, report.unknown)
    assert report.returned == (
        "(torch.Tensor(dtype=float32, shape=(2, 3)), "
        "torch.Tensor(dtype=bool, shape=(height,)), str('plain [text]'))"
    )


def test_examples_stand_for_their_types() -> None:
    report = hagane.check(Net(6), torch.zeros(3, 6))
    assert report.returned == "(torch.Tensor(dtype=float32, shape=(3, 6)), int(2))"
    wrong = hagane.check(Net(6), torch.zeros(3, 5))
    assert wrong.exit_code == 1
    assert "expected 6 features in the last axis, got 5" in wrong.errors[0].message


def test_a_bound_method_and_a_closure_are_checked() -> None:
    report = hagane.check(Net(6).broken, "float32[batch, 6]")
    assert [p.code for p in report.errors] == ["shape-mismatch"]
    assert report.errors[0].place.file == __file__
    assert "x.transpose(0, 1)" in report.errors[0].text
    width = 4

    def split(x):  # type: ignore[no-untyped-def]
        return x.view(x.shape[0], width, -1)

    assert hagane.check(split, "float32[n, 12]").returned == (
        "torch.Tensor(dtype=float32, shape=(n, 4, 3))"
    )


def test_what_cannot_be_checked_says_so() -> None:
    report = hagane.check(len, "float32[2]")
    assert not report.checked
    assert "has no Python source that can be checked" in report.notices[0].message
    report = hagane.check(Net(6))
    assert "the type of the argument 'x' of 'forward' is not known" in report.notices[0].message
    with pytest.raises(hagane.errors.InvalidArgument):
        hagane.check(Net(6), "float99[2]")


@pytest.mark.parametrize("case", TORCH, ids=lambda case: case.name)
def test_a_real_model_is_typed_as_its_source_alone(case) -> None:  # type: ignore[no-untyped-def]
    from hagane.checking import Request, check_source

    module = load(case.path)
    model = eval(case.make, vars(module))
    function = model if case.method == "forward" else getattr(model, case.method)
    report = hagane.check(function, **case.inputs)
    assert report.errors == []
    assert report.unknown == []
    alone = check_source(Request(case.path, case.target, case.inputs, case.make))
    assert report.returned == alone.returned
