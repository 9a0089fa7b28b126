"""Parameters of PyTorch's and NumPy's functions have the names that the libraries give them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.libraries.table import Table
from hagane.frontends.libraries.torch.table import TORCH
from hagane.graph import to_proto

# Parameters of which hagane knows no meaning, and schemas of other functions of the same name.
_LEFT_OUT = {
    "torch.layer_norm": {"cudnn_enable"},
    "torch.group_norm": {"cudnn_enabled"},
    "torch.stft": {"align_to_window"},
    "torch.Tensor.stft": {"align_to_window"},
    "torch.Tensor.expand": {"implicit"},
    "torch.Tensor.resize": {"memory_format"},
    "torch.Tensor.resize_": {"memory_format"},
    "torch.split": {"split_size"},  # of the method
    "torch.qr": {"some"},
    "torch.Tensor.qr": {"some"},
    "torch.chain_matmul": {"matrices"},  # given one by one
    "torch.broadcast_shapes": {"a", "b"},
    "torch.device": {"a"},
    "torch.einsum": {"a"},
    "torch.result_type": {"tensor", "other", "scalar", "scalar1", "scalar2"},
    "torch.Size": {"sizes"},
    "torch.Tensor.__getitem__": {"s"},
    "numpy.iinfo": {"int_type"},  # a class, whose signature is not that of its calls
    "numpy.put": {"mode"},
}
_OF_NUMPY = {"where", "casting", "order", "subok", "like", "signature", "initial", "copy", "dtype"}


def missing(table: Table, name: str, handler: Any, named: Iterator[str]) -> set[str]:
    """Return the names of parameters that a call of a function cannot be given."""
    found = inspect.signature(handler).parameters
    if any(one.kind is one.VAR_KEYWORD for one in found.values()):
        return set()
    own = {*found} | {one.rstrip("_") for one in found}
    own |= {other for other, its in table.synonyms.items() if its in own}
    own |= {*table.parameters.get(name, {}), "self", "input", "out", *_LEFT_OUT.get(name, ())}
    return {*named} - own


def of_schemas(name: str) -> list[list[str]]:
    """Return the names of parameters of PyTorch's own schemas of a function."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")  # type: ignore[attr-defined]
    return [[argument.name for argument in schema.arguments] for schema in schemas]


@pytest.fixture(autouse=True)
def _loaded() -> None:
    LibraryTables().table_of("torch.add")
    hagane.check(torch.nn.Linear(3, 4), input="float32[b, 3]")


def test_a_schema_of_each_function_of_pytorch_can_be_called_by_its_names() -> None:
    functions = {n: f for n, f in TORCH.functions.items() if n.count(".") == 1}
    methods = {f"torch.Tensor.{n}": f for n, f in TORCH.methods["torch.Tensor"].items()}
    wrong = {}
    for name, handler in (functions | methods).items():
        found = [
            missing(TORCH, name, handler, iter(names))
            for names in of_schemas(name.rpartition(".")[2])
        ]
        if found and all(found):
            wrong[name] = min(found, key=len)
    assert len(functions) > 300
    assert not wrong


def test_functions_of_numpy_can_be_called_by_the_names_of_their_parameters() -> None:
    wrong = {}
    for name, handler in NUMPY.functions.items():
        real: Any = np
        for part in name.split(".")[1:]:
            real = getattr(real, part, None)
        try:
            parameters = inspect.signature(real).parameters.values()
        except (TypeError, ValueError):
            continue
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        names = {one.name for one in parameters if one.kind in kinds} - _OF_NUMPY
        if not isinstance(real, np.ufunc) and missing(NUMPY, name, handler, iter(names)):
            wrong[name] = missing(NUMPY, name, handler, iter(names))
    assert not wrong


def products(x: Any) -> Any:
    return (
        torch.mm(x[:, None], mat2=x[None]), x[None].mv(vec=x), x.dot(tensor=x), x.pow(exponent=2),
        torch.polar(abs=x.abs(), angle=x).real, torch.special.round(x, decimals=1),
    )  # fmt: skip


def shapes(x: Any) -> Any:
    return (
        x.unfold(dimension=0, size=2, step=1), x[:, None].expand(size=(-1, 3)),
        x.repeat(repeats=(2,)), torch.stack(tensors=[x, x]).swapaxes(axis0=0, axis1=1),
        torch.broadcast_to(input=x, size=(2, x.shape[0])), torch.tensor(data=[1.0]) + x,
        torch.stack([x, x], 1).flatten().unflatten(0, sizes=(-1, 2)), x[None].permute(dims=(1, 0)),
        torch.stack([x] * 4).split_with_sizes(split_sizes=[1, 3])[1],
    )  # fmt: skip


def rows(x: Any) -> Any:
    joined = torch.cat(tensors=[row[None] * 2 for row in x], dim=0)
    return torch.stack(tensors=[row + 1 for row in x]), joined, torch.zeros_like(input=x)


def viewed(x: Any) -> Any:
    y, z = x + 1, x + 2
    seen = torch.reshape(input=y, shape=(-1, 1))
    part = torch.narrow(input=z, dim=0, start=0, length=2)
    y += 1
    part.zero_()
    return seen, z, (x + 0).fill_(value=3)


def cut(x: Any) -> Any:
    return (*torch.tensor_split(x, (1, -1)), *torch.tensor_split(x, (2, 1, 9)), *x.hsplit((1, 99)))


@pytest.mark.parametrize("program", [products, shapes, rows, viewed, cut])
def test_arguments_by_name(program: Any) -> None:
    content = to_proto(hagane.capture(program, "float32[n]")).SerializeToString()
    for session in (hagane.InferenceSession(content), onnxruntime.InferenceSession(content)):
        for size in (5, 3, 8):
            x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
            wanted = program(torch.tensor(x))
            found = session.run(None, {"x": x})
            assert [one.shape for one in found] == [tuple(one.shape) for one in wanted]
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def named(x: Any) -> Any:
    return (
        (x + 0).fill_(value=3), (x * 2).copy_(other=x), torch.fill_(input=x + 0, value=2),
        torch.mm(x[None], mat2=x[:, None]), torch.polar(abs=x.abs(), angle=x * 0).real,
        torch.isin(element=2, test_elements=x), torch.isin(elements=x, test_elements=x + 1),
    )  # fmt: skip


def test_parameters_that_tables_name_otherwise_are_those_of_pytorch() -> None:
    session = hagane.InferenceSession(hagane.capture(named, "float32[n]"))
    x = np.float32([-2, 0.5, 3])
    found = [one.tolist() for one in session.run(None, {"x": x})]
    assert found == [one.tolist() for one in named(torch.tensor(x))]
    assert found[1] == [-2, 0.5, 3]


def sparse(x: Any) -> Any:
    places = torch.sparse_coo_tensor([[0, 1], [1, 2]], [1.0, 2.0], (3, 4))
    return torch.sparse.mm(places, torch.ones(4, 8)), torch.stft(x, 2)


def test_places_are_lists_and_steps_of_windows_are_at_least_one() -> None:
    report = hagane.check(sparse, "float32[9]")
    (error,) = report.errors
    assert "expected hop_length > 0, a quarter of n_fft=2 by default, got 0" in error.message


def angles(x: Any) -> Any:
    return np.angle(z=x, deg=True), np.angle(x + 1j * x, deg=True), np.angle(x)


def test_angles_in_degrees() -> None:
    session = hagane.InferenceSession(hagane.capture(angles, "float32[n]"))
    x = np.float32([-2, 0.5, 3])
    for one, other in zip(session.run(None, {"x": x}), angles(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_batch_normalisation_without_a_bias() -> None:
    layer = torch.nn.BatchNorm2d(3, bias=False).eval()
    assert not hagane.check(layer, input="float32[n, 3, 4, 4]").errors
    x = torch.randn(2, 3, 4, 4)
    session = hagane.InferenceSession(hagane.capture(layer, "float32[n, 3, 4, 4]"))
    np.testing.assert_allclose(
        session.run(None, {"input": x.numpy()})[0], layer(x).detach(), atol=1e-5
    )


def scaled(x: Any) -> Any:
    return torch.view_as_real(torch.add(torch.complex(x, x), torch.complex(x, -x), alpha=2))


def by_name(x: Any) -> Any:
    z = torch.complex(real=x, imag=x)
    made = torch.mul(z, other=z.pow(exponent=2)).sub(other=2)
    return torch.view_as_real(made), torch.abs(input=z), torch.angle(input=z)


def test_complex_operands_by_name_and_factors() -> None:
    session = hagane.InferenceSession(hagane.capture(by_name, "float32[n]"))
    x = torch.tensor([0.5, -2, 3])
    for one, other in zip(session.run(None, {"x": x.numpy()}), by_name(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    session = hagane.InferenceSession(hagane.capture(scaled, "float32[n]"))
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], scaled(x), rtol=1e-6)
