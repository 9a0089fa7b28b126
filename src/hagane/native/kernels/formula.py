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


def c_bound(value: Dim, body: Body, names: Mapping[str, str]) -> str:
    """Return a C expression of ``double`` that no number on the way to a size exceeds.

    Args:
        value: The size.
        body: Takes names of sizes as arguments.
        names: C text for other names.
    """
    return bound_of(value, lambda name: names.get(name) or body.size(symbol(name)))
