"""Classes of the program that derive from ``tuple``: their items, and what they make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.checking import SCRIPT, Request, check_source

torch = pytest.importorskip("torch")


class Sizes(tuple[int, ...]):
    """Whose length, membership and items are its own."""

    def __contains__(self, item: object) -> bool:
        return item == 5

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        found = super().__getitem__(place)
        return Sizes(found) if isinstance(place, slice) else 10 * found

    @property
    def total(self) -> int:
        return sum(self)


class Pair(tuple):  # type: ignore[type-arg]
    """Made of its arguments."""

    def __new__(cls, *items):  # type: ignore[no-untyped-def]
        made = super().__new__(cls, items)
        made.scale = 3
        return made

    def __len__(self) -> int:
        return 10 * super().__len__()


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.sizes = Sizes((2, 3))
        self.linear = torch.nn.Linear(self.sizes.total, self.sizes[0])

    def forward(self, x):  # type: ignore[no-untyped-def]
        if 5 in self.sizes and 2 not in self.sizes:
            x = x * self.sizes[1]
        first, second = self.sizes
        return self.linear(x) + len(self.sizes[1:]) + first * second + sum(self.sizes + (1,))  # noqa: RUF005


def test_a_model_that_holds_one_is_captured_with_its_methods() -> None:
    model, x = Model().eval(), torch.randn(4, 5)
    (given,) = (session := hagane.InferenceSession(hagane.capture(model, x))).get_inputs()
    (found,) = session.run(None, {given.name: x.numpy()})
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-4, atol=1e-3)


def test_one_of_tensors_is_taken_and_given_back() -> None:
    @hagane.compile(fullgraph=True)  # type: ignore[untyped-decorator]
    def program(pair):  # type: ignore[no-untyped-def]
        made = Pair(pair[0] + pair[1], pair[0] * pair.scale)
        return made, sum(made), len(made)

    x, y = torch.randn(3), torch.randn(3)
    made, total, length = program(Pair(x, y))
    assert (type(made), tuple.__len__(made), made.scale, length) == (Pair, 2, 3, 20)
    torch.testing.assert_close(list(made), [x + y, x * 3])
    torch.testing.assert_close(total, x + y + x * 3)


def test_a_script_checks_with_the_sizes_that_one_holds(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        "import torch\n"
        "class Shapes(tuple):\n"
        "    def __new__(cls, text):\n"
        "        pairs = [part.split('x') for part in text.split('+')]\n"
        "        return super().__new__(cls, [(int(a), int(b)) for a, b in pairs])\n"
        "    def __len__(self):\n"
        "        return sum(a for a, _ in self)\n"
        "    def __contains__(self, b):\n"
        "        return any(b == other for _, other in self)\n"
        "    @property\n"
        "    def dim(self):\n"
        "        return sum(a * b for a, b in self)\n"
        "shapes = Shapes('8x1+4x3')\n"
        "assert 3 in shapes and 2 not in shapes and len(shapes) == 12\n"
        "assert shapes[1] == (4, 3) and shapes + () == ((8, 1), (4, 3))\n"
        "torch.nn.Linear(shapes.dim, 2)(torch.zeros(5, 20))\n"
        "torch.nn.Linear(shapes.dim, 2)(torch.zeros(5, 21))\n"
    )
    report = check_source(Request(file, SCRIPT))
    assert [(error.place.line, error.code) for error in report.errors] == [(17, "shape-mismatch")]
    assert report.unknown == []


def test_sizes_are_compared_with_tuples() -> None:
    def function(x: torch.Tensor) -> Any:
        batch, count, width = x.size()
        if x.size() != (batch, count, width) or x.shape == (batch, count):
            raise ValueError("other sizes")
        return x + 1 if (batch, count, width) == x.shape else x

    model = hagane.capture(function, x="float32[b, n, 4]")
    x = np.ones((2, 3, 4), "f")
    assert (hagane.InferenceSession(model).run(None, {"x": x})[0] == 2).all()


class Listed(list[Any]):
    pass


class Row(tuple[Any, ...]):
    pass


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.mean(Listed([0, 1])),
        lambda x: x.sum(dim=Row((0, 1))),
        lambda x: x.reshape(Listed([-1, 2])),
        lambda x: x.permute(Listed([1, 0])),
        lambda x: torch.cat(Listed([x, x])),
        lambda x: torch.stack(Row((x, x))),
        lambda x: x[Listed([0, 1])],
        lambda x: torch.nn.functional.pad(x, Listed([1, 1])),
        lambda x: torch.nn.functional.max_pool2d(x[None, None], Listed([2, 2])),
    ],
)
def test_functions_take_objects_of_classes_of_lists(call: Any) -> None:
    x = torch.arange(16.0).reshape(4, 4)
    assert torch.equal(hagane.compile(call, fullgraph=True)(x), call(x))
