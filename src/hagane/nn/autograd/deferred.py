"""Gradients of parameters that many calls share: their parts are joined, and computed once.

A weight that each step of a sequence reads has a gradient in each, as large as itself, and their
sum. Rows of all steps in one product give the same, and write the result once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.nn.autograd.variable import Variable
from hagane.nn.eager.dispatch import NATIVE
from hagane.ops.builder import Call
from hagane.ops.definition import OpDef
from hagane.ops.registry import operators

Compute = Callable[..., Any]
# Rows of a call whose sum may wait.
_FEW = 64


class Deferred(Variable):
    """A gradient that is computed once its array is asked for, or with others of its kind.

    Attributes:
        kind: The name of the operator that read the parameter.
        parts: Arrays of rows; those of other calls may be appended.
        compute: From the parts to the gradient.
    """

    kind: str
    parts: tuple[Any, ...]
    compute: Compute

    @classmethod
    def of(cls, kind: str, parts: tuple[Any, ...], compute: Compute) -> Deferred:
        """Return the gradient that ``compute`` makes of some rows."""
        made = cls.__new__(cls)
        made._set_up(None, None, False)
        made.kind, made.parts, made.compute = kind, parts, compute
        return made

    @property
    def array(self) -> Any:
        """The gradient's array."""
        if self._array is None:
            self._array = self.compute(*self.parts)
        return self._array

    @array.setter
    def array(self, array: Any) -> None:
        self._array = array


def together(terms: list[Any]) -> list[Any]:
    """Return gradients with those of one kind that are not computed yet as one, computed."""
    kinds: dict[str, list[Deferred]] = {}
    found = []
    for term in terms:
        if type(term) is Deferred and term._array is None:
            kinds.setdefault(term.kind, []).append(term)
        else:
            found.append(term)
    for row in kinds.values():
        if len(row) == 1:
            found.append(Variable.make(row[0].array))
        else:
            parts = [np.concatenate(each) for each in zip(*[one.parts for one in row], strict=True)]
            found.append(Variable.make(row[0].compute(*parts)))
    return found


def deferred_weight(op: OpDef, attributes: Any, inputs: Any, g: Any) -> Deferred | None:
    """Return the gradient of a call by its weight, if it is a sum over rows; None if it is not.

    Args:
        op: The operator.
        attributes: The attributes given.
        inputs: Its arrays.
        g: The gradient of its output.
    """
    if op.name == "Gemm" and set(attributes) <= {"transB"} and attributes.get("transB"):
        x, weight = inputs[0], inputs[1]
        if _are_few(x, weight) and x.dtype == weight.dtype:
            return Deferred.of("Gemm", (g, x), _product)
    return None


def _are_few(rows: Any, weight: Any) -> bool:
    """Whether rows of several calls may wait: more of them would be larger than the gradient."""
    return bool(4 * len(rows) <= weight.shape[1])


def weight_gradient(node: Any, g: Any, x: Any) -> Variable:
    """Return the gradient of ``x @ W.T`` by ``W``, to be computed with those of other calls.

    Args:
        node: Of the weight.
        g: The gradient of the product.
        x: Its rows.
    """
    if node._creator_node is None and _are_few(x, node.data):
        return Deferred.of("Gemm", (g, x), _product)
    return Variable.make(_product(g, x))


def deferred_bias(node: Any, g: Any) -> Variable:
    """Return the gradient of a bias that is added to rows, to be summed with those of other calls.

    Args:
        node: Of the bias.
        g: The gradient of the rows.
    """
    if node._creator_node is None and len(g) <= _FEW:
        return Deferred.of("bias", (g,), _sum_of_rows)
    return Variable.make(_sum_of_rows(g))


def _sum_of_rows(g: Any) -> Any:
    return g.sum(axis=0)


def deferred_rows(op: OpDef, attributes: Any, inputs: Any, g: Any) -> Deferred | None:
    """Return the gradient of rows that were looked up; None if the call looks up none."""
    if op.name != "Gather" or attributes.get("axis", 0) != 0 or inputs[0].ndim != 2:
        return None
    weight, indices = inputs
    if not weight.size:
        return None

    def compute(g: Any, indices: Any) -> Any:
        call = Call(op, (weight, indices), {"axis": 0}, (g,))
        prepared = NATIVE.gradient(call, (True,), (0,))
        found = None if prepared is None else prepared.run((weight, indices, g, g))
        if found is not None:
            return found[0]
        made = np.zeros_like(weight)
        np.add.at(made, indices, g)
        return made

    parts = (g.reshape(-1, weight.shape[1]), indices.reshape(-1))
    return Deferred.of("Gather", parts, compute) if 4 * len(parts[1]) <= len(weight) else None


def _product(g: Any, x: Any) -> Any:
    return NATIVE.apply(Call(operators()["", "Gemm"], (g, x), {"transA": 1}), 1)[0]
