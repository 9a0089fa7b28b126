"""Pictures whose channels lie side by side, so that one read between pixels serves a vector of them."""

from __future__ import annotations

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.tensor import Tensor
from hagane.native.lowering.state import Lowering
from hagane.symbolic import Dim, ceildiv, product


def channels_last(low: Lowering, name: str, x: Tensor) -> tuple[Tensor, Dim]:
    """Return a copy ``(images, pixels, wide)`` of a picture, and its row ``wide``.

    Rows are whole vectors of channels; lanes behind the last channel mean nothing.

    Args:
        low: Takes the kernel.
        name: Of the copy.
        x: The picture, ``(images, channels, ...)`` in row-major order.
    """
    lanes = low.facts.level.lanes
    images, channels, *lengths = x.shape
    pixels = product(lengths)
    wide = ceildiv(channels, lanes) * lanes
    made = low.recorder.new(name, x.dtype, (images, pixels, wide))
    view = Tensor(
        made.buffer, made.dtype, (images, channels, pixels), (pixels * wide, 1, wide), made.offset
    )
    emit_copy(low.recorder, x.reshaped((images, channels, pixels)), view)
    return made, wide


def rows_of_channels() -> str:
    """Return a C function that brings rows of channels to rows of points.

    ``KERNEL_turn(own, wide, to, points, m, count)`` writes ``count`` channels of ``m`` points.
    """
    return """
static void KERNEL_turn(const float *own, int64_t wide, float *to, int64_t points, int64_t m, int64_t count) {
int64_t p = 0;
for (; p + 8 <= m; p += 8) { int64_t c = 0;
for (; c + 8 <= count; c += 8) hg_square_4((const uint32_t *)(own + p * wide + c), wide, (uint32_t *)(to + c * points + p), points);
for (; c < count; c++) for (int64_t k = p; k < p + 8; k++) to[c * points + k] = own[k * wide + c]; }
for (; p < m; p++) for (int64_t c = 0; c < count; c++) to[c * points + p] = own[p * wide + c]; }
"""
