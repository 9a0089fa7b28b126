"""``torch.vmap``: functions of an item over batches of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

import hagane
from hagane.errors import CaptureError

WEIGHTS = torch.linspace(-1, 1, 9).reshape(3, 3)


def shared(x: Any) -> Any:
    return torch.vmap(lambda r, w: (r @ w, r * 2), in_dims=(0, None))(x, WEIGHTS)


def along_others(x: Any) -> Any:
    return torch.vmap(lambda r, s: r - s, in_dims=(1, -1), out_dims=1)(x, x * 3)


def twice(x: Any) -> Any:
    return torch.vmap(torch.vmap(lambda element: element * element + 1))(x)


def parts(x: Any) -> Any:
    made = torch.vmap(lambda p, k: {"sum": p["a"] + p["b"].sum(), "z": (p["a"] * k,)}, (0, None))
    return made({"a": x, "b": x * 2}, 3.0)


def slopes(x: Any) -> Any:
    return torch.vmap(torch.func.grad(lambda r: (r**3).sum()))(x)


def named(x: Any) -> Any:  # arguments by name are those of all items
    return torch.func.vmap(lambda r, whole=None: (r * whole).sum())(x, whole=x)


def pair(x: Any) -> Any:
    return torch.stack([x[0] * x[1], x[2] ** 2]), x.sum() * x


def first(x: Any) -> Any:
    return pair(x)[0]


def bent(x: Any, w: Any) -> Any:
    return ((x * w) ** 3).sum()


FUNCTIONAL = torch.autograd.functional
DERIVATIVES: dict[str, Any] = {
    "jacobian": lambda x: FUNCTIONAL.jacobian(pair, x),
    "jacobian by two": lambda x: FUNCTIONAL.jacobian(lambda y, w: first(y * w), (x, x + 1)),
    "autograd's hessian": lambda x: FUNCTIONAL.hessian(bent, (x, x + 1)),
    "autograd's vjp": lambda x: FUNCTIONAL.vjp(pair, x, (torch.ones(2), x)),
    "autograd's jvp": lambda x: FUNCTIONAL.jvp(pair, x, x * 2, create_graph=True),
    "hvp": lambda x: FUNCTIONAL.hvp(bent, (x, x + 1), (x * 2, x)),
    "vhp": lambda x: FUNCTIONAL.vhp(lambda y: (y**3).sum(), x, x * 2),
    "vjp": lambda x: torch.func.vjp(pair, x)[1]((torch.ones(2), x))[0],
    "jvp": lambda x: torch.func.jvp(pair, (x,), (x * 2,)),
    "jacrev": lambda x: torch.func.jacrev(pair)(x),
    "jacfwd": lambda x: torch.func.jacfwd(lambda y, w: first(y * w), argnums=(0, 1))(x, x + 1),
    "hessian": lambda x: torch.func.hessian(bent)(x, x + 2),
    "mapped": lambda x: torch.vmap(torch.func.jacrev(first))(torch.stack([x, x * 2])),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_functions_are_pytorchs(name: str) -> None:
    program = DERIVATIVES[name]
    session = hagane.InferenceSession(hagane.capture(program, x="float32[3]"))
    x = np.array([1, 2, -3], np.float32)
    expected = tree_leaves(program(torch.from_numpy(x)))
    for one, other in zip(session.run(None, {"x": x}), expected, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-5)


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return torch.vmap(self.inner)(x)


@pytest.mark.parametrize(
    "program", [shared, along_others, twice, parts, slopes, named, Rows().eval()]
)
def test_one_graph_maps_batches_of_any_size(program: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(program, x="float32[n, 3]"))
    for rows in (1, 4):
        x = np.random.default_rng(rows).random((rows, 3), np.float32)
        expected = tree_leaves(program(torch.from_numpy(x)))
        for one, other in zip(session.run(None, {"x": x}), expected, strict=True):
            np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_arguments_without_a_batch_are_refused_as_in_pytorch() -> None:
    with pytest.raises(CaptureError, match="vmap needs at least one tensor with a batch"):
        hagane.capture(lambda x: torch.vmap(lambda r: r + 1, in_dims=None)(x), x="float32[n, 3]")


def written_leaf(x: Any) -> Any:
    tree = x * 2
    leaves, _ = tree_flatten(tree)
    leaves[0].add_(1)
    return tree


def written_view(x: Any) -> Any:
    tree = x * 2
    tree_map(lambda leaf: leaf[0], tree).add_(1)
    return tree


def derived_leaf(x: Any) -> Any:
    weight = torch.ones_like(x).requires_grad_()
    (slope,) = torch.autograd.grad([x**2], [x], [weight], create_graph=True)
    return torch.autograd.grad([slope], tree_flatten(weight)[0], [x * 3])[0]


@pytest.mark.parametrize("program", [written_leaf, written_view, derived_leaf])
def test_the_leaves_of_a_tree_are_the_tensors_themselves(program: Any) -> None:
    x = torch.linspace(-1, 1, 4)
    graph = hagane.capture(program, x="float32[n]")
    (got,) = hagane.InferenceSession(graph).run(None, {"x": x.numpy()})
    np.testing.assert_allclose(got, program(x.requires_grad_()).detach().numpy(), rtol=1e-6)
