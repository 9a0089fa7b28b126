"""Numbers and truth values of Python that the data decide, as scalars of the graph."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.exact import most_of_value
from hagane.frontends.capture.emitting.scoped import ScopedEmitter
from hagane.frontends.capture.emitting.terms import as_value
from hagane.frontends.python.values.values import (
    Kinds,
    Real,
    Tensor,
    Truth,
    Value,
)
from hagane.ops.builder import interpreting
from hagane.ops.functions.numbers.division import floor_quotient, signed_remainder
from hagane.symbolic import Dim, Expr, symbols_of
from hagane.symbolic.questions import denominator
from hagane.symbolic.term import BOOL, Term, variable

_REAL = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "Equal", ast.Lt: "Less", ast.LtE: "LessOrEqual", ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual",
}  # fmt: skip


_NO_NUMBER = (
    "a number that no operator of the graph computes, as that of a clock, a random draw or a file; "
    "give it as an argument"
)


class ScalarEmitter(ScopedEmitter):
    """Makes scalars of the graph of numbers of the program, and back."""

    def argument(self, value: Value, name: str) -> Value:
        """Return an argument of the program: its tensors and numbers are inputs of the graph."""
        if isinstance(value, Tensor) and value.value not in self.homes:
            self.add_input(value, name)
            if name in self.given:
                self.given[name](value)
        elif isinstance(value, Expr) and str(value) == name and name not in self.numbers:
            self.numbers[name] = self._scalar_input(ir.DataType.INT64, name)
        elif isinstance(value, Real) and value.tensor is None and value.formula is None:
            return Real(None, self._scalar_input(ir.DataType.DOUBLE, name))
        elif isinstance(value, Truth):
            self.truths[str(value.term.data)] = self._scalar_input(ir.DataType.BOOL, name)
        return value

    def item_name(self, name: str, place: int) -> str:
        """Return the name of an item of an argument: its path."""
        return f"{name}.{place}"

    def _scalar_input(self, dtype: ir.DataType, name: str) -> Tensor:
        made = self.new(dtype, (), name=name)
        self.add_input(made, name)
        return made

    def number(self, x: Tensor, label: str) -> Expr:
        """Return the only element of a tensor of integers as a number."""
        whole = x if x.dtype == ir.DataType.INT64 else self.op("Cast", x, to=ir.DataType.INT64)
        scalar = whole if whole.shape == () else self.op("Reshape", whole, np.array([], np.int64))
        made = self.fresh(label)
        self.knowledge.lowest[str(made)] = None
        self.most[str(made)] = most_of_value(self, x.value)
        self.numbers[str(made)] = scalar
        return made

    def scalar(self, value: Tensor, *, whole: bool) -> Value:
        """Return the only element of a tensor as a number."""
        if whole:
            return self.number(value, "item")
        return self.real(value)

    def truth(self, x: Tensor, name: str) -> Term:
        """Return the truth of the only element of a tensor."""
        cast = x if x.dtype == ir.DataType.BOOL else self.op("Cast", x, to=ir.DataType.BOOL)
        scalar = cast if cast.shape == () else self.op("Reshape", cast, np.array([], np.int64))
        self.truths[name] = scalar
        return variable(name, BOOL)

    def real(self, x: Tensor) -> Real:
        """Return the only element of a tensor as a float of Python."""
        x = self.stopped(x)
        wide = x if x.dtype == ir.DataType.DOUBLE else self.op("Cast", x, to=ir.DataType.DOUBLE)
        scalar = wide if wide.shape == () else self.op("Reshape", wide, np.array([], np.int64))
        return Real(None, scalar)

    def real_tensor(self, value: Value) -> Tensor:
        """Return a number of Python as a scalar of float64."""
        if isinstance(value, Real):
            if value.tensor is not None:
                return value.tensor
            if value.formula is None:
                self.fail("capture", _NO_NUMBER)
            scale = denominator(value.formula)
            whole = self.size(value.formula * scale)
            return self.op("Div", self._wide(whole), np.array(scale, np.float64))  # type: ignore[no-any-return]
        if isinstance(value, Expr):
            return self._wide(self.size(value))
        if isinstance(value, Truth):
            return self._wide(self.tensor(as_value(self, value.term)))
        return self.constant(np.array(value, np.float64))

    # Types that the data decide.

    def also(self, value: Value) -> Kinds:
        """Return the types besides its own that a number may have, as the data decide."""
        if isinstance(value, Expr) and self.kinds:
            return frozenset(k for name in symbols_of(value) for k in self.kinds.get(name, ()))
        if isinstance(value, Real):
            inner = () if value.formula is None else self.also(value.formula)
            return value.also.union(
                ir.DataType.DOUBLE if kind == ir.DataType.INT64 else kind for kind in inner
            )
        return frozenset()

    def of_kinds(self, value: Value, kinds: Kinds) -> Value:
        """Return a number as one that may have other types besides its own."""
        if isinstance(value, float | Real):
            found = value if isinstance(value, Real) else Real(None, self.real_tensor(value))
            return replace(found, also=kinds - {float})
        more = kinds - {int}
        if isinstance(value, Truth | bool) or not isinstance(value, int | Expr):
            return value
        if not more or more <= self.also(value):
            return value
        made = self.number(self.size(value), "mixed")
        self.kinds[str(made)] = more
        return made

    def plain(self, value: Value) -> Value:
        """Return a number as one of Python."""
        if not self.also(value):
            return value
        if isinstance(value, Real):
            return Real(None, self.real_tensor(value))
        return self.number(self.size(value), "whole")

    def real_scalar(self, value: Real) -> Tensor | None:
        """Return a float that is not known as a tensor without axes."""
        return self.real_tensor(value)

    def truth_scalar(self, value: Truth) -> Tensor | None:
        """Return a truth value that is not known as a tensor without axes."""
        return self.as_scalar(value, "bool")

    def _wide(self, x: Tensor) -> Tensor:
        return self.op("Cast", x, to=ir.DataType.DOUBLE)  # type: ignore[no-any-return]

    def real_operation(self, kind: type[ast.operator], left: Value, right: Value) -> Real:
        """Return an operation of Python on numbers of which one is a float of the data."""
        a, b = self.real_tensor(left), self.real_tensor(right)
        if kind in (ast.FloorDiv, ast.Mod):
            rounded = floor_quotient if kind is ast.FloorDiv else signed_remainder
            with interpreting(self):
                return Real(None, rounded(a, b))
        if kind not in _REAL:
            self.fail("capture", "an operation on floats that the data decide")
        return Real(None, self.op(_REAL[kind], a, b))

    def real_comparison(self, kind: type[ast.cmpop], left: Value, right: Value) -> Tensor:
        """Return a comparison of numbers of which one is a float of the data."""
        a, b = self.real_tensor(left), self.real_tensor(right)
        if kind is ast.NotEq:
            return self.op("Not", self.op("Equal", a, b))  # type: ignore[no-any-return]
        if kind not in _COMPARE:
            self.fail("capture", "a comparison of floats that the data decide")
        return self.op(_COMPARE[kind], a, b)  # type: ignore[no-any-return]

    def size(self, dim: Dim) -> Tensor:
        """Return a size as a tensor."""
        return self.tensor(self.scope.nodes.size(dim))

    def as_scalar(self, value: Value, kind: str) -> Tensor:
        """Return a number of Python as a scalar: ``int``, ``bool`` or ``float``."""
        if kind == "float":
            return self.real_tensor(value)
        if kind == "int":
            return self.size(value)
        if isinstance(value, Truth):
            return self.tensor(as_value(self, value.term))
        return self.constant(np.array(bool(value)))

    def new_truth(self) -> str:
        """Return a name for a truth value that is not taken."""
        return f"?state {len(self.truths)} {next(self._numbers)}"
