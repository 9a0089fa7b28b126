"""Copies between tensors that are contiguous along different axes: squares of eight by eight elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Tensor
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum, product

# Side of a square, elements of a task, bytes of a line of the cache.
_SIDE, _TASK, _LINE = 8, 8192, 64


def emit_turned(
    recorder: Recorder,
    label: str,
    axes: Sequence[tuple[Dim, Dim, Dim]],
    source: Tensor,
    target: Tensor,
    nodes: Sequence[ir.Node] = (),
) -> None:
    """Write the kernel of a turned copy.

    Args:
        recorder: Takes the kernel.
        label: Its label.
        axes: Length, step of the result and step of the source of each axis. The result is contiguous
            along the last one, the source along the one before.
        source: The tensor to copy; only its place and type count.
        target: The result.
        nodes: The nodes that it computes.
    """
    size = source.dtype.itemsize
    bits = np.dtype(f"u{size}")
    body = Body()
    element = f"uint{8 * size}_t"
    x = body.pointer(replace(source, dtype=bits))
    y = body.pointer(replace(target, dtype=bits), written=True)
    (m, of_columns, _), (n, _, of_rows) = axes[-2:]
    line = _LINE // size
    # A task's columns are whole lines of the source; where rows are short, there are more of them.
    wide = line * maximum(1, floordiv(_TASK // line, maximum(1, n)))
    high = minimum(n, _TASK // line)
    pieces = ceildiv(m, wide), ceildiv(n, maximum(1, high))
    items = product([axis[0] for axis in axes[:-2]]) * pieces[0] * pieces[1]
    share = maximum(1, floordiv(_TASK, maximum(1, minimum(m, wide) * high)))
    count = body.size(share)
    body.add(
        f"for (int64_t item = q * {count}, end = hg_min({body.size(items)}, item + {count}); item < end; item++) {{",
        f"int64_t left = item; const int64_t s = {body.size(of_rows)}, t = {body.size(of_columns)};",
        f"const int64_t i0 = left % {body.size(pieces[1])} * {body.size(high)}; left /= {body.size(pieces[1])};",
        f"const int64_t j0 = left % {body.size(pieces[0])} * {body.size(wide)}; left /= {body.size(pieces[0])};",
        f"const int64_t i1 = hg_min({body.size(n)}, i0 + {body.size(high)}), j1 = hg_min({body.size(m)}, j0 + {body.size(wide)});",
        f"const {element} *from = {x}; {element} *to = {y};",
    )
    for length, of_target, of_source in reversed(axes[:-2]):
        body.add(
            f"{{ const int64_t at = left % {body.size(length)}; left /= {body.size(length)};",
            f"from += at * {body.size(of_source)}; to += at * {body.size(of_target)}; }}",
        )
    # Short rows that follow each other without gaps, as pixels of three colours do.
    for few in (2, 3, 4):
        if _may_be(few, of_rows, m):
            body.add(
                f"if (s == {few} && {body.size(m)} == {few}) {{ for (int64_t i = i0; i < i1; i++) {{",
                " ".join(f"to[{k} * t + i] = from[i * {few} + {k}];" for k in range(few)),
                "} continue; }",
            )
        if _may_be(few, of_columns, n):
            body.add(
                f"if (t == {few} && {body.size(n)} == {few}) {{ for (int64_t k = j0; k < j1; k++) {{",
                " ".join(f"to[k * {few} + {i}] = from[{i} * s + k];" for i in range(few)),
                "} continue; }",
            )
    one, two = _SIDE, 2 * _SIDE
    lines = [
        f"for (int64_t j = j0, over; j < j1; j = over) {{ over = hg_min(j1, j + {line});",
        "int64_t i = i0;",
        f"for (; i + {two} <= i1; i += {two}) {{ int64_t k = j;",
        f"for (; k + {one} <= over; k += {one}) {{ const {element} *a = from + i * s + k; {element} *b = to + k * t + i;",
        f"hg_square_{size}(a, s, b, t); hg_square_{size}(a + {one} * s, s, b + {one}, t); }}",
        *_left(
            m,
            f"for (; k < over; k++) for (int64_t l = i; l < i + {two}; l++) to[k * t + l] = from[l * s + k];",
        ),
        "}",
    ]
    if not isinstance(n, int) or n % two:
        lines += [
            f"for (; i + {one} <= i1; i += {one}) {{ int64_t k = j;",
            f"for (; k + {one} <= over; k += {one}) hg_square_{size}(from + i * s + k, s, to + k * t + i, t);",
            *_left(
                m,
                f"for (; k < over; k++) for (int64_t l = i; l < i + {one}; l++) to[k * t + l] = from[l * s + k];",
            ),
            "}",
        ]
    rest = "for (; i < i1; i++) for (int64_t k = j; k < over; k++) to[k * t + i] = from[i * s + k];"
    body.add(*lines, *_left(n, rest), "}", "}")
    recorder.emit(
        label, body, ceildiv(items, share), work=work_of(target.size, 0.4), followers=nodes
    )


def _may_be(number: int, *dims: Dim) -> bool:
    """Whether sizes that are known do not say that one is another number."""
    return all(dim == number or not isinstance(dim, int) for dim in dims)


def _left(length: Dim, text: str) -> list[str]:
    """Return a loop over what squares leave of a length, which takes compilers longest, if there is any."""
    return [] if isinstance(length, int) and length % _SIDE == 0 else [text]
