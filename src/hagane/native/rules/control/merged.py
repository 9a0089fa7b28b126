"""Small kernels of a loop's body that follow one another, as one function.

The engine takes longer to come to the next kernel than a kernel of a few numbers runs; a call in C
takes a fifth of that.
"""

from __future__ import annotations

from collections.abc import Sequence

from hagane.native.kernels.kernel import Kernel, Work
from hagane.native.kernels.recorder import label_parts
from hagane.symbolic import Dim

# Estimated nanoseconds of a kernel that is worth less than the way to it, or not much more.
_SMALL = 250.0
_CALL = (
    "static __attribute__((noinline, noclone)) void {0}"
    "(char *const *P, const int64_t *D, int64_t q, const hg_thread *thread)"
)
_DEFINED = "void KERNEL(char *const *P, const int64_t *D, int64_t q, const hg_thread *thread)"


def merged(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return kernels of which small ones in a row are one.

    Kernels that may fail stay apart, so that messages name their nodes alone.
    """
    found: list[Kernel] = []
    row: list[Kernel] = []
    for kernel in kernels:
        if _is_small(kernel):
            row.append(kernel)
            continue
        found += [_one(row), kernel] if row else [kernel]
        row = []
    return [*found, _one(row)] if row else found


def _is_small(kernel: Kernel) -> bool:
    return (
        kernel.control is None
        and not kernel.failure
        and kernel.tasks == 1
        and kernel.code.count(_DEFINED) == 1
        and isinstance(kernel.work, int | float)
        and isinstance(kernel.flops, int | float)
        and kernel.work <= _SMALL
        and kernel.scratch == 0
    )


def _one(kernels: Sequence[Kernel]) -> Kernel:
    """Return a kernel that calls others one after the other."""
    if len(kernels) == 1:
        return kernels[0]
    parts: dict[str, str] = {}
    calls: list[str] = []
    pointers, sizes = 0, 0
    for kernel in kernels:
        part = parts.setdefault(kernel.code, f"KERNEL_part{len(parts)}")
        calls.append(f"{part}(P + {pointers}, D + {sizes}, 0, thread);")
        pointers += len(kernel.pointers)
        sizes += len(kernel.sizes)
    texts = [
        code.replace(_DEFINED, _CALL.format("KERNEL")).replace("KERNEL", part)
        for code, part in parts.items()
    ]
    body = "\n  ".join(["(void)q;", *calls])
    work: Work = sum(float(each.work) for each in kernels if isinstance(each.work, int | float))
    flops: Work = sum(float(each.flops) for each in kernels if isinstance(each.flops, int | float))
    dims: tuple[Dim, ...] = tuple(dim for each in kernels for dim in each.sizes)
    return Kernel(
        _label(kernels),
        "\n".join(texts) + f"\n{_DEFINED} {{\n  {body}\n}}\n",
        tuple(pointer for each in kernels for pointer in each.pointers),
        dims,
        1,
        work,
        flops,
        name=f"{kernels[0].name}_and_{len(kernels) - 1}_more",
        nodes=tuple(dict.fromkeys(name for each in kernels for name in each.nodes)),
    )


def _label(kernels: Sequence[Kernel]) -> str:
    """Return the operators of all with the name and place of the first."""
    operators = [label_parts(each.label)[0] for each in kernels]
    first = kernels[0].label
    head = label_parts(first)[0]
    return "+".join(operators) + first.removeprefix(head)
