"""Sizes as C text in a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from hagane.native.kernels.kernel import Body
from hagane.symbolic import Dim, Expr, symbol
from hagane.symbolic import c_bound as bound_of
from hagane.symbolic import c_text as text_of

# A size that is found may be zero where formulas divide by it.
FLOOR = """static inline int64_t KERNEL_floor(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}"""


def c_text(value: Dim, body: Body, names: Mapping[str, str]) -> str:
    """Return a C expression for a size; the kernel needs ``FLOOR`` as a helper.

    Args:
        value: The size.
        body: Takes names of sizes as arguments.
        names: C text for other names.
    """
    if not isinstance(value, Expr):
        return body.size(value)
    return text_of(value, lambda name: names.get(name) or body.size(symbol(name)), "KERNEL_floor")


class Formulas:
    """Many sizes as C text in one kernel, which needs ``FLOOR`` as a helper.

    Each rounded quotient, remainder, minimum and maximum in them is computed once, in a variable that
    is defined where it is first needed.

    Args:
        body: Takes names of sizes as arguments, and the definitions.
        names: C text for other names.
    """

    def __init__(self, body: Body, names: Mapping[str, str]):
        self._body, self._names = body, names
        self._variables: dict[str, str] = {}

    def text(self, value: Dim) -> str:
        """Return a C expression for a size."""
        if not isinstance(value, Expr):
            return self._body.size(value)
        return text_of(
            value, self._name, "KERNEL_floor", lambda text: self._shared("int64_t", text)
        )

    def bound(self, value: Dim) -> str:
        """Return a C expression of ``double`` that no number on the way to a size exceeds."""
        return bound_of(value, self._name, lambda text: self._shared("double", text))

    def _name(self, name: str) -> str:
        return self._names.get(name) or self._body.size(symbol(name))

    def _shared(self, ctype: str, text: str) -> str:
        variable = self._variables.get(text)
        if variable is None:
            variable = self._variables[text] = f"t{len(self._variables)}"
            self._body.add(f"const {ctype} {variable} = {text};")
        return variable
