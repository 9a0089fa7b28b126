"""Tensors given for the result of a function, ``out=``: of which element types they may be.

Most functions convert the result where that loses no category, as from integers to floats
(``torch.can_cast``); others take the result's own type alone, which PyTorch's own samples show.
"""

from __future__ import annotations

from hagane.frontends.libraries.torch.operands import category
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor
from hagane.graph.types import dtype_name

# Functions whose result is converted to any type.
_ANY = frozenset(("bernoulli", "cumprod", "cumsum"))
_EXACT = frozenset(
    ("abs", "absolute", "addbmm", "addmm", "addmv", "all", "amax", "amin", "any", "argmax",
     "argmin", "baddbmm", "bitwise_not", "bmm", "ceil", "complex", "conj_physical", "cross",
     "diag", "dot", "floor", "frac", "gather", "heaviside", "histc", "index_add", "index_copy",
     "index_reduce", "index_select", "isin", "isneginf", "isposinf", "cholesky", "det", "eigvalsh",
     "inv", "lu_solve", "matrix_norm", "matrix_power", "multi_dot", "norm", "solve",
     "solve_triangular", "svdvals", "vecdot", "vector_norm", "log_softmax", "logcumsumexp",
     "masked_select", "matmul", "mm", "msort", "multinomial", "mv", "nan_to_num", "nanquantile",
     "neg", "negative", "avg_pool2d", "avg_pool3d", "gelu", "hardshrink", "linear", "logsigmoid",
     "softplus", "softshrink", "nonzero", "ormqr", "quantile", "renorm", "round", "scatter",
     "scatter_add", "scatter_reduce", "searchsorted", "sgn", "sign", "signbit", "slice_scatter",
     "softmax", "take", "take_along_dim", "tensordot", "tril", "triu", "trunc", "vdot", "where")
)  # fmt: skip


def refuse_out(core: Core, name: str, made: Tensor, out: Tensor) -> None:
    """Refuse a tensor for the result whose element type the result does not become."""
    last = name.rpartition(".")[2]
    lossless = category(made.dtype) <= category(out.dtype) and last not in _EXACT
    if lossless or made.dtype == out.dtype or last in _ANY:
        return
    core.fail(
        "dtype-mismatch",
        f"expected elements of type {dtype_name(made.dtype)} as 'out', got {core.show(out)}",
        out,
        remedy=f"give a tensor of dtype=torch.{dtype_name(made.dtype)}",
    )


__all__ = ["refuse_out"]
