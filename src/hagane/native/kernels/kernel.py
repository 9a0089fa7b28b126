"""One generated C function, and the buffers and sizes that it is called with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from hagane.native.kernels.control import Control
from hagane.native.kernels.tensor import Buffer, Tensor
from hagane.symbolic import Dim, Expr

C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "hg_f16",
    "bfloat16": "hg_bf16",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "bool": "uint8_t",
    "float8_e4m3fn": "hg_e4m3fn",
    "float8_e4m3fnuz": "hg_e4m3fnuz",
    "float8_e5m2": "hg_e5m2",
    "float8_e5m2fnuz": "hg_e5m2fnuz",
    "float8_e8m0fnu": "hg_e8m0",
    "float4_e2m1fn": "hg_e2m1",
    "int4": "hg_i4",
    "uint4": "hg_u4",
    "int2": "hg_i2",
    "uint2": "hg_u2",
}


# A time or a count of operations: a number, or a formula of sizes that only a run knows.
Work: TypeAlias = "float | Expr"


def work_of(amount: Dim, each: float) -> Work:
    """Return ``amount`` times ``each``, as a formula where the amount is one."""
    if isinstance(amount, int):
        return amount * each
    found = amount * Fraction(each).limit_denominator(1 << 16)
    return found if isinstance(found, Expr) else float(found)


def c_type(dtype: np.dtype[Any]) -> str:
    """Return the C type of an element."""
    return C_TYPES[dtype.name]


@dataclass(frozen=True, slots=True)
class Pointer:
    """An argument of a kernel: a place in a buffer, in bytes."""

    buffer: Buffer
    offset: Dim
    written: bool


@dataclass(eq=False)
class Kernel:
    """A call of a generated function: ``tasks`` times, in any order, by any thread.

    Attributes:
        label: The nodes that it computes, for profiles and messages.
        code: The C function, named ``KERNEL``; equal code is compiled once.
        pointers: Its pointer arguments.
        sizes: Its sizes that are known only at run time.
        tasks: How many independent pieces it has.
        work: Estimated nanoseconds of one thread; small kernels run without waking threads.
        flops: Arithmetic, for profiles; a multiplication and an addition are two.
        scratch: Bytes of memory each thread needs.
        failure: The meaning of a failure that it notes, with ``{value}``, and ``{0}`` and so on for
            the sizes below.
        failure_sizes: Sizes that the text names.
        control: The loop, branch or mark in the place of code.
        name: The name of the C function, without its hash.
        nodes: Names of the nodes that it computes, or a part of, by ``name_of``.
    """

    label: str
    code: str
    pointers: tuple[Pointer, ...]
    sizes: tuple[Dim, ...]
    tasks: Dim
    work: Work = 0.0
    flops: Work = 0.0
    scratch: Dim = 0
    failure: str = ""
    failure_sizes: tuple[Dim, ...] = ()
    control: Control | None = None
    name: str = "kernel"
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A kernel whose code is compiled; ``Kernel`` tells of the fields.

    Attributes:
        symbol: The name of its function in the library; None without code.
    """

    label: str
    symbol: str | None
    pointers: tuple[Pointer, ...]
    sizes: tuple[Dim, ...]
    tasks: Dim
    work: Work
    flops: Work
    scratch: Dim
    failure: str
    failure_sizes: tuple[Dim, ...]
    control: Control | None
    nodes: tuple[str, ...]

    @classmethod
    def of(cls, kernel: Kernel, symbol: str | None) -> Call:
        """Return the call of a kernel's function."""
        taken = (item.name for item in fields(cls) if item.name != "symbol")
        return cls(symbol=symbol, **{name: getattr(kernel, name) for name in taken})


# A function that kernels share, as it stands in the text of each: its name, and its own text.
SHARED = re.compile(r"#ifndef (hg_[0-9a-f]{16})_there\n#define .*\n((?:.*\n)*?)#endif /\* \1 \*/")
AnyKernel: TypeAlias = Kernel | Call


def shared_function(made: Callable[[str], str], called: str = "") -> tuple[str, str]:
    """Return the name and the text of a function that is compiled once for all kernels.

    Args:
        made: Returns the text of a ``SHARED`` function of some name, which needs no other helpers.
        called: Another name for it in the kernel, which begins with ``KERNEL``.
    """
    name = f"hg_{hashlib.sha256(made('shared').encode()).hexdigest()[:16]}"
    text = made(name)
    lines = [
        f"#ifndef {name}_there",
        f"#define {name}_there",
        text.strip("\n"),
        f"#endif /* {name} */",
    ]
    return name, "\n".join([*lines, *([f"#define {called} {name}"] if called else [])])


@dataclass
class Body:
    """A C function under construction."""

    scratch: int = 0  # bytes of memory that each thread needs

    lines: list[str] = field(default_factory=list)
    pointers: list[Pointer] = field(default_factory=list)
    sizes: list[Dim] = field(default_factory=list)
    results: list[tuple[Dim, ...]] = field(default_factory=list)  # shapes of the tensors written
    helpers: list[str] = field(default_factory=list)

    def pointer(
        self, tensor: Tensor, *, written: bool = False, ctype: str | None = None, offset: Dim = 0
    ) -> str:
        """Declare a pointer to a tensor's first element and return its C name."""
        name = f"p{len(self.pointers)}"
        kind = ctype or c_type(tensor.dtype)
        at = (tensor.offset + offset) * tensor.dtype.itemsize
        self.lines.append(
            f"{'' if written else 'const '}{kind} *{name} = ({kind} *)P[{len(self.pointers)}];"
        )
        self.pointers.append(Pointer(tensor.buffer, at, written))
        if written:
            self.results.append(tensor.shape)
        return name

    def raw(self, buffer: Buffer, *, written: bool = False, ctype: str = "float") -> str:
        """Declare a pointer to the start of a buffer and return its C name."""
        name = f"p{len(self.pointers)}"
        self.lines.append(
            f"{'' if written else 'const '}{ctype} *{name} = ({ctype} *)P[{len(self.pointers)}];"
        )
        self.pointers.append(Pointer(buffer, 0, written))
        return name

    def size(self, dim: Dim) -> str:
        """Return C text for a size: a literal, or a run-time argument."""
        if isinstance(dim, int):
            return f"{dim}L" if dim >= 0 else f"({dim}L)"
        if dim not in self.sizes:
            self.sizes.append(dim)
        return f"D[{self.sizes.index(dim)}]"

    def number(self, dim: Dim) -> str:
        """Return C text for a size: the number itself, or a run-time argument."""
        return str(dim) if isinstance(dim, int) else self.size(dim)

    def add(self, *lines: str) -> None:
        """Append lines."""
        self.lines.extend(lines)

    def helper(self, text: str) -> None:
        """Add a static function before the kernel; ``KERNEL`` in it is replaced too."""
        if text not in self.helpers:
            self.helpers.append(text)

    def shared(self, made: Callable[[str], str], called: str = "") -> str:
        """Add a function that kernels share, and return its name; see ``shared_function``."""
        name, text = shared_function(made, called)
        self.helper(text)
        return name

    def code(self) -> str:
        """Return the function's text, with its helpers."""
        body = "\n  ".join(self.lines)
        return (
            "\n".join(self.helpers)
            + "\nvoid KERNEL(char *const *P, const int64_t *D, int64_t q, const hg_thread *thread) {\n"
            + f"  (void)P, (void)D, (void)thread;\n  {body}\n}}\n"
        )
