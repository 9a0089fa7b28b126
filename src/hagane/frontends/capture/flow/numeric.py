"""Operators and functions of Python's own on numbers that the data decide."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.exact import only_item
from hagane.frontends.capture.flow.lists import is_data
from hagane.frontends.capture.flow.mathematics import DOMAINS, FUNCTIONS, OPERATORS, RANGES, TRUTHS
from hagane.frontends.capture.flow.mixtures import NUMPY, kinds_of_result, refuse_narrow
from hagane.frontends.capture.flow.paths import Paths
from hagane.frontends.python.interpret.domain import Operation
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Real,
    Tensor,
    Truth,
    Value,
    is_plain,
)
from hagane.ops.builder import interpreting
from hagane.symbolic import Dim, Expr
from hagane.symbolic.term import variables_of

NONE = object()  # Python's own meaning does
_NUMBERS = (int, float, Expr, Real, Truth)
_BITS: dict[type[ast.AST], str] = {
    ast.BitAnd: "BitwiseAnd",
    ast.BitOr: "BitwiseOr",
    ast.BitXor: "BitwiseXor",
}
_ROUNDING = {"floor": "Floor", "ceil": "Ceil"}
_BY_TEN = 10.0
_WIDTH = 64  # bits of an int64


_NO_INTEGERS = (
    ("IsNaN", ValueError, "NaN"),
    ("IsInf", OverflowError, "infinity"),
)


class Numbers(Paths):
    """Operators and functions whose operands are numbers that the data decide."""

    # Operators.

    def number_operation(self, kind: Operation, *operands: Value) -> Value:
        """Return an operator applied to numbers; ``NONE`` where Python's own meaning does."""
        if not all(isinstance(value, _NUMBERS) for value in operands):
            return NONE
        also = [self.emit.also(value) for value in operands]
        if any(also):
            refuse_narrow(self.core, kind, operands, also)
        found = (
            self._unary(kind, *operands) if len(operands) == 1 else self._binary(kind, *operands)
        )
        if not any(also) or not issubclass(kind, ast.operator | ast.unaryop):
            return found
        made = self.core.compute(kind, *operands) if found is NONE else found
        return self.emit.of_kinds(made, kinds_of_result(kind, operands, also))

    def _unary(self, kind: Operation, value: Value) -> Value:
        if isinstance(value, Real) and kind is ast.USub:
            return self._real("Neg", value) if value.tensor is not None else NONE
        if isinstance(value, Truth) and kind in (ast.USub, ast.Invert, ast.UAdd):
            number = self._counted(value)
            return (
                self.core.compute(kind, number)
                if kind is ast.USub
                else (number if kind is ast.UAdd else -1 - number)
            )
        if isinstance(value, Expr) and kind is ast.Invert:
            return -1 - value
        return NONE

    def _counted(self, value: Truth) -> Expr:
        return self.emit.number(self.emit.as_scalar(value, "bool"), "truth")

    def _binary(self, kind: Operation, left: Value, right: Value) -> Value:
        if not (is_data(left) or is_data(right)):
            return NONE
        given = left, right
        if issubclass(kind, ast.operator) and not (
            kind in _BITS and all(isinstance(x, bool | Truth) for x in (left, right))
        ):
            left, right = (self._counted(x) if isinstance(x, Truth) else x for x in (left, right))
        self._may_divide_by_zero(kind, left, right)
        if isinstance(left, Real | float) or isinstance(right, Real | float):
            return self._reals(kind, left, right)
        if isinstance(left, int | Expr) and isinstance(right, int | Expr):
            found = self._integers(kind, left, right)
            counted = any(isinstance(x, Truth) for x in given)
            return self.core.compute(kind, left, right) if counted and found is NONE else found
        if issubclass(kind, ast.cmpop) and kind not in (ast.Is, ast.IsNot):
            a, b = (self._counted(x) if isinstance(x, Truth) else x for x in (left, right))
            both = isinstance(left, bool | Truth) and isinstance(right, bool | Truth)
            return NONE if both and kind in (ast.Eq, ast.NotEq) else (self.core.compute(kind, a, b))
        return NONE

    def _may_divide_by_zero(self, kind: Operation, left: Value, right: Value) -> None:
        """Let a division of numbers of Python fail where the divisor is 0, as NumPy's does not."""
        if kind not in (ast.Div, ast.FloorDiv, ast.Mod) or not is_data(right):
            return
        if not any(self.emit.also(x) for x in (left, right)):
            zero = self.core.compare(ast.Eq, right, 0)
            whole = isinstance(left, int | Expr) and isinstance(right, int | Expr)
            named = "integer modulo" if kind is ast.Mod and whole else "division"
            self.core.fail_where(zero, ZeroDivisionError, f"{named} by zero")

    def _reals(self, kind: Operation, left: Value, right: Value) -> Value:
        if not any(isinstance(x, Real) and x.tensor is not None for x in (left, right)):
            found = self.core.compute(kind, left, right)  # by a formula, if there is one
            if not _is_lost(found):
                return found
        if issubclass(kind, ast.operator):
            return self.emit.real_operation(kind, left, right)
        if issubclass(kind, ast.cmpop) and kind not in (ast.Is, ast.IsNot):
            name = str(self.core.new_truth().data)
            return Truth(self.emit.truth(self.emit.real_comparison(kind, left, right), name))
        return NONE

    def _integers(self, kind: Operation, left: Dim, right: Dim) -> Value:
        """Return the result of integers of which one is not known, where no formula gives it."""
        if kind in _BITS or (kind is ast.Pow and not isinstance(right, int)):
            name = _BITS.get(kind, "Pow")
            return self._whole(name, left, right if kind in _BITS else self._not_negative(right))
        if kind in (ast.LShift, ast.RShift) and not isinstance(right, int):
            count = self._not_negative(right)
            if kind is ast.LShift:
                return left * self._whole("Pow", 2, count)
            count = self._whole("Min", count, _WIDTH)
            first = self.core.compute(ast.FloorDiv, count, 2)
            for part in (first, count - first):  # 2 ** 64 is no int64
                left = self.core.compute(ast.FloorDiv, left, self._whole("Pow", 2, part))
            return left
        if kind is ast.Pow and isinstance(right, int) and right < 0:
            return self.emit.real_operation(ast.Pow, left, right)
        if kind is ast.Pow and isinstance(right, int) and right > 8:
            return self._whole("Pow", left, right)
        if kind is ast.Div:
            found = self.core.compute(kind, left, right)
            return self.emit.real_operation(kind, left, right) if _is_lost(found) else found
        return NONE

    def _not_negative(self, value: Dim) -> Dim:
        """Return an exponent or a shift; the graph fails in a run where it is below 0.

        Python's result is a float then, or an error.
        """
        if self._is_size(value):
            return value
        number = self.emit.size(value)
        below = self.core.op("Less", number, np.array(0, np.int64))
        nodes, told = self.emit.scope.nodes, "exponent or shift: expected 0 or more"
        made = only_item(nodes, self.emit.value_of(number), self.emit.value_of(below), told)
        return self.emit.number(self.emit.tensor(made), "whole")

    def _whole(self, name: str, left: Dim, right: Dim) -> Expr:
        operands = [self.emit.size(left), self.emit.size(right)]
        made = self.core.op(name, *operands)
        if name == "Pow":
            made = self.emit.fitting(name, operands, made)
        return self.emit.number(made, "whole")

    # Functions.

    def _abs(self, value: Value) -> Value:
        also = self.emit.also(value)
        if isinstance(value, Real):
            return self.emit.of_kinds(self._real("Abs", value), also)
        if isinstance(value, Expr) and not self._is_size(value):
            # Formulas take sizes for non-negative.
            made = self.emit.number(self.core.op("Abs", self.emit.size(value)), "whole")
            return self.emit.of_kinds(made, also)
        return NONE

    def _round(self, number: Value, ndigits: Value = None) -> Value:
        value = number
        if isinstance(value, Expr) and (ndigits is None or (is_plain(ndigits) and ndigits >= 0)):
            return value
        if isinstance(value, Tensor) and value.kind == NUMPY and value.shape == ():
            if ndigits is not None:
                return self.core.call_library("numpy.round", [value, ndigits])
            value = self.core.tensor_number(value, whole=False)
        if not isinstance(value, Real):
            return NONE
        if ndigits is None:
            return self._whole_part(value, "rounded", "Round")
        if not isinstance(ndigits, int):
            return NONE
        scale = np.array(_BY_TEN**ndigits, np.float64)
        scaled = self.core.op("Mul", self.emit.real_tensor(value), scale)
        made = Real(None, self.core.op("Div", self.core.op("Round", scaled), scale))
        return self.emit.of_kinds(made, self.emit.also(value))

    def _int(self, value: Value = 0, base: Value = None) -> Value:
        if isinstance(value, Truth):
            return self._counted(value)
        if isinstance(value, Real) and base is None:
            return self._whole_part(value, "whole")
        if isinstance(value, Expr) and self.emit.also(value):
            return self.emit.plain(value)
        return NONE

    def _whole_part(self, value: Real, name: str, rounding: str = "") -> Expr:
        """Return a float as an integer; what is no number or infinite has none."""
        tensor = self.emit.real_tensor(value)
        if value.formula is None:
            for test, error, text in _NO_INTEGERS:
                bad = self.emit.truth(self.core.op(test, tensor), str(self.core.new_truth().data))
                self.core.fail_where(Truth(bad), error, f"cannot convert float {text} to integer")
        rounded = self.core.op(rounding, tensor) if rounding else tensor
        whole = self.core.op("Cast", rounded, to=ir.DataType.INT64)
        return self.emit.number(self.emit.as_wide(tensor, whole), name)

    def _float(self, value: Value = 0.0) -> Value:
        if isinstance(value, Truth):
            return Real(None, self.emit.as_scalar(value, "float"))
        if self.emit.also(value):
            return self._real("Identity", value)
        return NONE

    def _pow(self, left: Value, right: Value, modulus: Value = None) -> Value:
        if modulus is None:
            return NONE
        found = self.core.binary(ast.Pow, left, right)
        return self.core.binary(ast.Mod, found, modulus)

    def _real(self, name: str, value: Value) -> Real:
        return Real(None, self.core.op(name, self.emit.real_tensor(value)))

    def _math(self, name: str, arguments: Sequence[Value]) -> Value:
        values = [
            self.core.tensor_number(v, whole=v.dtype.is_integer()) if isinstance(v, Tensor) else v
            for v in arguments
        ]
        if not all(isinstance(v, _NUMBERS) for v in values):
            return NONE
        if is_data(values[0]):
            self._check_argument(name, values[0])
        several = FUNCTIONS.get((name, len(values)))
        if several is not None or (name in OPERATORS and len(values) == 1):
            if several is None:
                made = self._real(OPERATORS[name], values[0])
            else:
                with interpreting(self.emit):
                    made = Real(None, several(*map(self.emit.real_tensor, values)))
            if name in TRUTHS:
                assert made.tensor is not None
                return Truth(self.emit.truth(made.tensor, str(self.core.new_truth().data)))
            return made
        value = values[0]
        if name in ("floor", "ceil", "trunc") and not isinstance(value, Expr):
            real = value if isinstance(value, Real) else Real(None, self.emit.real_tensor(value))
            return self._whole_part(real, name, _ROUNDING.get(name, ""))
        if name == "pow":
            tensors = [self.emit.real_tensor(v) for v in values]
            return Real(None, self.core.op("Pow", *tensors))
        if name in ("floor", "ceil", "trunc", "prod"):
            return NONE
        raise CheckError("capture", f"'math.{name}' of a number that the data decide")

    def _check_argument(self, name: str, value: Value) -> None:
        """Let a function of ``math`` fail for numbers for which Python's raises an error."""
        for bounds, error, text in (
            (DOMAINS, ValueError, "math domain error"),
            (RANGES, OverflowError, "math range error"),
        ):
            for outside, bound in bounds.get(name, ()):
                bad = self.core.compare(outside, value, bound)
                self.core.fail_where(bad, error, text)

    def extreme_number(self, name: str, items: Sequence[Value]) -> Value:
        """Return the least or greatest of integers: a formula where none may be negative."""
        if all(map(self._is_size, items)):
            return NONE
        also = frozenset(kind for item in items for kind in self.emit.also(item))
        scalars = [self.emit.size(item) for item in items]
        made = self.emit.number(self.core.op(name.removeprefix("Reduce"), *scalars), "extreme")
        return self.emit.of_kinds(made, also)

    def _is_size(self, value: Value) -> bool:
        """Whether an integer is known not to be negative, as formulas take it."""
        return self.core.decide(self.core.as_term(self.core.knowledge.less(-1, value))) is True


def _is_lost(value: Value) -> bool:
    """Whether a number, or the truth of a comparison, is one that nothing computes."""
    if isinstance(value, Truth):
        return any(name.startswith("?") for name in variables_of((value.term,)))
    return isinstance(value, Real) and value.formula is None and value.tensor is None


__all__ = ["NONE", "Numbers"]
