"""Functions of PyTorch that samples of its own operators found wrong or missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hagane  # noqa: E402

F = torch.nn.functional

M = torch.tensor([[2.0, 1.0, -1.0], [4.0, 0.5, 3.0], [0.0, 5.0, 1.0]])
W = torch.arange(12.0).reshape(3, 4) - 5
N = torch.arange(1, 7).reshape(2, 3)
C = torch.complex(W.double() / 3, W.double().flip(0))
HALF = torch.tensor([[300.0, -700.0, 0.5, 2.0], [1e-3, 2e-3, 3e-3, 4e-3]], dtype=torch.float16)


def integer_factors() -> Any:
    square = N @ N.T
    return (
        torch.addmm(square, square, square, beta=0.6, alpha=1.7),
        torch.addmv(N[:, 0], square, N[:, 1], beta=0.6, alpha=2.7),
        torch.linspace(-2.0, -3, 50, dtype=torch.int64),
        torch.linspace(4.3, -3, 4, dtype=torch.int8),
    )  # fmt: skip


def narrow_integers() -> Any:
    small = torch.tensor([[200, 3], [7, 255]], dtype=torch.uint8)
    return (
        torch.addbmm(small, small[None], small[None]), small.sum_to_size(2), small.neg(),
        F.softmin(small, 1, dtype=torch.float32), torch.unravel_index(small, (16, 16)),
        torch.linalg.vander(small), torch.linalg.vector_norm(torch.tensor(-3.0), 4),
    )  # fmt: skip


def losses_of_integers() -> Any:
    return (
        F.margin_ranking_loss(N, N.flip(0), N.sign(), reduction="sum"),
        F.triplet_margin_loss(N, N + 1, N - 3),
    )


def normalised_halves(x: Any = HALF) -> Any:
    return (
        F.rms_norm(x, (4,)), F.layer_norm(x, (4,)), F.group_norm(x, 2),
        F.instance_norm(x[None] * 90), F.rms_norm(x.bfloat16(), (4,)),
    )  # fmt: skip


def weighted_covariance() -> Any:
    shares = torch.tensor([1.0, 2.0, 0.5, 1.0])
    return torch.cov(W.bfloat16(), aweights=shares), W.bfloat16().cummax(1)


def complex_parts(c: Any = C) -> Any:
    return (
        c.cfloat(), c.cdouble(), F.pad(c, (1, 2), "constant", 1.0),
        torch.cumsum(c, 1, dtype=c.dtype),
        torch.complex(c.real, c.imag), torch.view_as_complex(torch.view_as_real(c)),
        torch.polar(c.real, c.imag), c[0, 0].prod(0), torch.equal(c, c), torch.equal(c, c + 1),
    )  # fmt: skip


def factors(x: Any = M) -> Any:
    LU, pivots, info = torch.linalg.lu_factor_ex(x)
    singular = x.clone()
    singular[:, 1] = 0
    return (
        LU, pivots, info, *torch.linalg.lu(x[:2]), *torch.lu(x), *torch.geqrf(x[:, :2]),
        torch.linalg.lu_solve(LU, pivots, x, adjoint=True), torch.lu_solve(x, LU, pivots),
        torch.ormqr(*torch.geqrf(x[:, :2]), x, left=False, transpose=True),
        torch.linalg.inv_ex(x), torch.linalg.solve_ex(singular, x).info,
        torch.linalg.cholesky_ex(x.T @ x), torch.linalg.cholesky_ex(-x.T @ x).info,
        torch.linalg.tensorinv(x.reshape(3, 3, 1), 1), torch.linalg.tensorsolve(x, x[0]),
        torch.linalg.cond(x), torch.linalg.cond(x, 1), torch.linalg.cond(singular, 1),
        torch.linalg.matrix_rank(x, atol=3.0), torch.linalg.matrix_rank(x + x.T, hermitian=True),
        torch.linalg.pinv(x[:2], rtol=0.1), torch.linalg.pinv(x + x.T, hermitian=True),
        torch.linalg.eigvalsh(x, UPLO="U"), torch.linalg.solve(x, x[:2], left=False),
        torch.linalg.solve_triangular(x, x, upper=False, left=False, unitriangular=True),
        torch.linalg.lstsq(x[:2], x[:2]).solution,
    )  # fmt: skip


def without_elements(x: Any = M) -> Any:
    none = x[:0, :0]
    return torch.linalg.inv(none), torch.linalg.det(none), torch.linalg.lu_factor(none)


def operators_by_name(x: Any = M) -> Any:
    T = torch.Tensor
    x = x.clone()
    part = T.__getitem__(x, (slice(None), 1))
    T.__iadd__(part, 1)
    T.__setitem__(x, 0, 7.0)
    return (
        T.__radd__(x, 2), T.__rsub__(x, 2), T.__rpow__(x, 2), T.__rmatmul__(x, x.T),
        T.__rdiv__(x + 9, 2), T.__rmod__(x + 9, 5), T.__and__(N, 3), T.__neg__(x), T.__lt__(x, 1),
    )  # fmt: skip


def copies(x: Any = M) -> Any:
    x = x.clone()
    row, turned = torch.select_copy(x, 0, 1), torch.t_copy(x)
    x.zero_()
    return (
        row, turned, torch.view_copy(turned, (9,)), torch.expand_copy(row, (2, 3)),
        torch.unfold_copy(row, 0, 2, 1), *torch.unbind_copy(turned), torch.slice_copy(row, -1, 1),
    )  # fmt: skip


def called_by_layers(x: Any = W) -> Any:
    mean, variance = torch.zeros(4), torch.ones(4)
    return (
        torch.native_layer_norm(x, (4,), None, None, 1e-5),
        torch.native_batch_norm(x, None, None, mean, variance, True, 0.1, 1e-5), mean, variance,
        torch.frexp(x), torch.fill(x, torch.tensor(3)), torch.nonzero_static(x, size=14),
        torch.fft.hfft(x), torch.fft.ihfft(x), torch.avg_pool1d(x[None], 2),
    )  # fmt: skip


def control(x: Any = W) -> Any:
    low = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
    count, y = torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (x.sum() * 0, x))
    return low, count, y, torch.zeros(torch.sym_min(x.shape[0], 2))


def flat(value: Any) -> list[Any]:
    return [y for x in value for y in flat(x)] if isinstance(value, list | tuple) else [value]


@pytest.mark.filterwarnings("ignore:torch.lu:UserWarning")
@pytest.mark.parametrize(
    "function",
    [integer_factors, narrow_integers, losses_of_integers, normalised_halves, weighted_covariance,
     complex_parts, factors, without_elements, operators_by_name, copies,
     called_by_layers, control],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_values_and_types_are_those_of_pytorch(function: Callable[[], Any]) -> None:
    compiled = hagane.compile(function, fullgraph=True)
    for found, expected in zip(flat(compiled()), flat(function()), strict=True):
        if not isinstance(expected, torch.Tensor):
            assert found == expected
            continue
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        narrow = expected.dtype in (torch.float16, torch.bfloat16)
        ours, theirs = (x.to(torch.complex128).numpy() for x in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-2 if narrow else 1e-4, atol=1e-4)


def test_the_rank_of_matrices_of_open_sizes_goes_by_their_longer_side() -> None:
    def rank(x: Any) -> Any:
        return torch.linalg.matrix_rank(x)

    x = torch.diag(torch.tensor([1.0] * 29 + [2e-6]))
    assert hagane.compile(rank, dynamic=True)(x) == rank(x) == 29


def test_no_samples_leave_running_statistics_as_they_are() -> None:
    layer = torch.nn.BatchNorm1d(3)
    with torch.no_grad():
        hagane.compile(layer, fullgraph=True)(torch.zeros(0, 3))
    assert layer.running_mean.tolist() == [0, 0, 0]
    assert layer.running_var.tolist() == [1, 1, 1]
