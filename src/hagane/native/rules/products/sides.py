"""How the two sides of a product of computed matrices are read into words of 32 bits.

A word is a float, or a pair of bfloat16 that follow one another along the inner axis; panels multiply
words, and a product of pairs has half as many of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hagane.native.kernels.kernel import Body
from hagane.native.kernels.tensor import Tensor
from hagane.native.layouts.pairs import BFLOAT16
from hagane.symbolic import Dim, ceildiv


@dataclass(frozen=True, slots=True)
class Side:
    """C text that reads one side; kernels have its inner size as ``depth``.

    Attributes:
        pairs: Whether numbers are bfloat16, else floats.
        inner: C text of the distance of two numbers along the inner axis.
    """

    pairs: bool
    inner: str

    @property
    def kind(self) -> str:
        """The C type of a number."""
        return "hg_bf16" if self.pairs else "float"

    def start(self, k: str) -> str:
        """Return how far the numbers of word ``k`` are from those of the first."""
        return f"2 * ({k}) * {self.inner}" if self.pairs else f"({k}) * {self.inner}"

    def vector(self, place: str, k: str, count: str = "VL") -> str:
        """Return words that lie side by side along the other axis; those from ``count`` on are zeros.

        Args:
            place: Where their first numbers lie.
            k: Which words of the inner axis they are.
            count: How many there are.
        """
        if self.pairs:
            return f"KERNEL_words({place}, {self.inner}, 2 * ({k}) + 1 < depth, {count})"
        return f"v_load({place})" if count == "VL" else f"v_load_n({place}, {count})"

    def word(self, place: str, k: str) -> str:
        """Return one word."""
        if self.pairs:
            return f"KERNEL_word({place}, {self.inner}, 2 * ({k}) + 1 < depth)"
        return f"*({place})"

    def in_order(self, step: str) -> str:
        """Return whether words lie in the memory of rows as they are, if the inner axis does.

        Args:
            step: The distance of rows.
        """
        return f"depth % 2 == 0 && {step} % 2 == 0" if self.pairs else "1"

    def words(self, place: str) -> str:
        """Return a pointer to such words."""
        return f"(const float *)({place})" if self.pairs else place

    def step(self, step: str) -> str:
        """Return the distance of rows of such words."""
        return f"{step} / 2" if self.pairs else step


def side(body: Body, tensor: Tensor, axis: int) -> Side:
    """Return how a matrix is read whose inner axis is ``axis``; its functions become a kernel's."""
    pairs = tensor.dtype == BFLOAT16
    if pairs:
        body.helper(_FUNCTIONS)
    return Side(pairs, body.size(tensor.strides[axis]))


def words_of(count: Dim, dtype: np.dtype[np.generic]) -> Dim:
    """Return how many words numbers are that follow one another along the inner axis."""
    return ceildiv(count, 2) if dtype == BFLOAT16 else count


_FUNCTIONS = """
INLINE vf KERNEL_words(const hg_bf16 *x, int64_t step, int both, int64_t n) {
  vu low, high = {0};
  if (n >= VL) {
    low = (vu)v_load_bf16(x);
    if (both) high = (vu)v_load_bf16(x + step);
  } else {
    low = (vu)v_load_bf16_n(x, hg_max(n, 0));
    if (both) high = (vu)v_load_bf16_n(x + step, hg_max(n, 0));
  }
  return (vf)(low >> 16 | high);
}
INLINE float KERNEL_word(const hg_bf16 *x, int64_t step, int both) {
  union { uint32_t bits; float word; } found = {x[0] | (both ? (uint32_t)x[step] << 16 : 0)};
  return found.word;
}
"""
