"""Operators of PyTorch under their names in its library, memory read as another type, results."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hagane  # noqa: E402
from hagane.errors import CaptureError  # noqa: E402

aten = torch.ops.aten
added = torch.ops.aten.add.Tensor
X = torch.arange(-6.0, 6).reshape(3, 4) / 4
IMAGE = torch.arange(32.0).reshape(1, 2, 4, 4)


def arithmetic(x: Any) -> Any:
    return (
        aten.add(x, 1), added(x, x, alpha=2), aten.div(x, 2.0, rounding_mode="trunc"),
        aten.mul.Scalar(self=x, other=3), aten.add_.Tensor(x.clone(), 5), aten.relu_(x - 1),
        aten.hardswish_(x.clone()),
        aten.special_erfcx(x.double()), aten.max.dim(x, 0), aten.sum.dim_IntList(x, [0], True),
    )  # fmt: skip


def shapes(x: Any) -> Any:
    return (
        aten.view.default(x, [4, 3]), aten.slice.Tensor(x, 1, 1, 9223372036854775807),
        aten.permute(x, [1, 0]), aten.index.Tensor(x, [None, torch.tensor([2, 0])]),
        aten.index_put(x, [None, torch.tensor([0])], torch.tensor(2.0), True),
        aten.index_put_(x.clone(), [None, torch.tensor([0])], torch.tensor(2.0)),
        aten.index_put_(x.clone(), [x > 0], torch.tensor(2.0)),
        aten.index_put_(x.clone(), [None, x[0] > x[0].median()], torch.ones(3, 2)),
        aten._to_copy.default(x, dtype=7), aten.sym_size.int(x, 1),
        aten.constant_pad_nd(x, [1, 0], 2.0), aten.embedding(x, torch.tensor([2, 0])),
        aten.full([2, 3], 1, dtype=torch.int32, layout=torch.strided, device=torch.device("cpu")),
    )  # fmt: skip


def layers(x: Any) -> Any:
    weight = torch.ones(2, 2, 3, 3)
    scale = x[0, :, 0, 0]
    return (
        aten.convolution(x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        aten.convolution(x, weight, scale, [2, 2], [0, 0], [1, 1], True, [0, 0], 1),
        aten.max_pool2d_with_indices(x, [2, 2]), aten._adaptive_avg_pool2d(x, [2, 2]),
        aten.avg_pool2d(x, [3, 3], [2, 2], [1, 1]), aten.elu(x - 9, 1.5, 2.0),
        aten.upsample_nearest2d.vec(x, None, [2.0, 2.0]), aten._softmax(x, 1, False),
        aten.upsample_bilinear2d(x, [8, 8], False, 2.0, 2.0), aten.reflection_pad2d(x, [1] * 4),
        aten.batch_norm(x, scale, scale, scale, scale + 1, False, 0.1, 1e-5, False),
        aten.layer_norm(x, [4], None, None, 1e-5, False), aten.mse_loss(x, x + 2, 2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "x"), [(arithmetic, X), (shapes, X), (layers, IMAGE)],
    ids=["arithmetic", "shapes", "layers"],
)  # fmt: skip
def test_operators_of_the_library_are_public_functions(program: Callable[..., Any], x: Any) -> None:
    compiled = hagane.compile(program, fullgraph=True)
    found, expected = compiled(x), program(x)
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other)
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_an_operator_that_is_not_known_is_named() -> None:
    def program(x: Any) -> Any:
        return torch.ops.aten._cdist_forward(x, x, 2.0, None)

    with pytest.raises(CaptureError, match="'torch.ops.aten._cdist_forward' is not underst"):
        hagane.compile(program, fullgraph=True)(X)


TYPES = ("float64", "bfloat16", "float16", "int8", "uint8", "int16", "int64")


@pytest.mark.parametrize("old", ["float32", "bfloat16", "uint8", "int64"])
def test_memory_is_read_as_elements_of_another_type(old: str) -> None:
    def program(x: Any) -> Any:
        return [x.view(getattr(torch, name)) for name in TYPES]

    x = (torch.arange(-8, 8).reshape(2, 8) * 7).to(getattr(torch, old))
    found = hagane.compile(program, fullgraph=True)(x)
    for one, other in zip(found, program(x), strict=True):
        assert one.dtype == other.dtype
        assert one.contiguous().view(torch.uint8).equal(other.contiguous().view(torch.uint8))


def without_signs(x: Any) -> Any:
    bits = x.view(torch.int32)
    bits &= 0x7FFFFFFF
    return x + 0, bits


def written_below(x: Any) -> Any:
    bits = x.view(torch.int32)
    x *= -1
    return bits + 1


def array_written_below(x: Any) -> Any:
    bits = x.view(np.int32)
    x *= -1
    return bits + 1


def bits_of_array(x: Any) -> Any:
    bits = x.view(np.int32)
    bits += 1
    return x + 1


@pytest.mark.parametrize(
    "program", [without_signs, written_below, array_written_below, bits_of_array]
)
def test_memory_of_two_element_types_is_one(program: Callable[..., Any]) -> None:
    given = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    of_torch = program in (without_signs, written_below)
    one, other = (torch.tensor(given) if of_torch else given.copy() for _ in range(2))
    found, expected = hagane.compile(program, fullgraph=True)(one), program(other)
    assert str(found) == str(expected)
    assert (one == other).all()


def test_wider_elements_that_are_written_are_refused() -> None:
    def program(x: Any) -> Any:
        halves = x.view(torch.int16)
        x *= -1
        return halves + 1

    with pytest.raises(CaptureError, match="shares its memory with this one"):
        hagane.compile(program, fullgraph=True)(X.clone())


def test_named_results_have_the_classes_of_torch() -> None:
    def program(x: Any) -> Any:
        return x.max(0), torch.sort(x), torch.linalg.slogdet(x[:, :3]), aten.sort(x)

    found, expected = hagane.compile(program)(X + X.T.sum()), program(X + X.T.sum())
    assert [type(one) for one in found] == [type(one) for one in expected]
    torch.testing.assert_close(found[0].values, expected[0].values)


def test_a_function_written_in_c_is_compiled_alone() -> None:
    for function in (torch.sin, aten.sin, torch.Tensor.sin, added, operator.add):
        compiled = hagane.compile(function, fullgraph=True)
        arguments = (X, X) if function in (added, operator.add) else (X,)
        torch.testing.assert_close(compiled(*arguments), function(*arguments))
        assert len(compiled.captures) == 1
    assert hagane.compile(torch.add, fullgraph=True)(X, other=X, alpha=2).equal(3 * X)


def test_memory_of_arguments_that_lie_otherwise_is_read_as_it_is() -> None:
    def program(x: Any) -> Any:
        return x.as_strided((2, 2), (1, 2)) + 1

    compiled = hagane.compile(program)
    assert compiled(X.clone()).equal(program(X.clone()))
    with pytest.warns(hagane.CompileNotice, match="the program asks how it lies in memory"):
        assert compiled(X.T.contiguous().T).equal(program(X.T.contiguous().T))


def test_signs_shifts_and_axes_are_those_of_torch() -> None:
    def program(x: Any, y: Any) -> Any:
        odd = torch.tensor([float("nan"), float("-inf"), -0.0, 3.0])
        return (
            torch.sign(odd * x[0]), odd.sgn(), torch.sign(x > 0), torch.roll(x, (2,)),
            y.squeeze(0, 2), y.squeeze(), torch.squeeze(y, (0, 2)),
            torch.heaviside(odd, odd).nan_to_num(7.0), torch.signbit(torch.trunc(odd)),
            torch.prod(y > 0, 1, dtype=torch.bool), y.to(torch.uint8).sum(dtype=torch.int8),
            -y.to(torch.uint8), torch.add(y + 1j, y, alpha=2), torch.sub(y, y + 1j, alpha=1j),
            torch.nn.functional.dropout(y, 1.0), torch.nn.functional.dropout(y, 0.0),
        )  # fmt: skip

    given = torch.ones(3, 4), torch.ones(1, 2, 1, 3)
    found = hagane.compile(program, fullgraph=True)(*given)
    for one, other in zip(found, program(*given), strict=True):
        assert one.equal(other), (one, other)


def of_transposed(x: Any) -> Any:
    turned = (x + 1).permute(2, 0, 1)
    return turned, turned[0], turned.permute(1, 2, 0), (x * 2).transpose(0, 1)


def of_formats(x: Any) -> Any:
    last = x[None].contiguous(memory_format=torch.channels_last)
    return (
        last, x[None].clone(memory_format=torch.channels_last), last.permute(0, 2, 3, 1),
        (x[None] + 1).to(torch.float64, memory_format=torch.channels_last),
    )  # fmt: skip


@pytest.mark.parametrize("program", [of_transposed, of_formats])
def test_results_lie_in_memory_as_the_program_has_them(program: Callable[..., Any]) -> None:
    compiled = hagane.compile(program, dynamic=True, fullgraph=True)
    for size in (2, 3):
        x = torch.arange(size * 12.0).reshape(size, 3, 4)
        for grows in (False, True):
            found = compiled(x.clone().requires_grad_(grows))
            for one, other in zip(found, program(x), strict=True):
                assert one.detach().equal(other)
                assert grows or one.stride() == other.stride()  # (views are copies then)
            assert found[0].stride() == program(x)[0].stride()


def test_questions_about_a_format_of_memory() -> None:
    def program(x: Any) -> Any:
        last = x.contiguous(memory_format=torch.channels_last)
        last += 1
        asked = [last.is_contiguous(), last.is_contiguous(memory_format=torch.channels_last)]
        return asked, x.is_contiguous(memory_format=torch.channels_last), x * 1, last.stride()

    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    found, expected = hagane.compile(program, fullgraph=True)(x.clone()), program(x.clone())
    assert str(found) == str(expected)
