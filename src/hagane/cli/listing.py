"""The code of a model's kernels, for ``hagane inspect --c`` and ``--asm``."""

from __future__ import annotations

from hagane.errors import InvalidArgument
from hagane.native import assembly_listing, c_listing
from hagane.runtime.backends.native import NativePart
from hagane.runtime.pipeline import Built


def code_of(built: Built, node: str | None, *, machine_code: bool) -> str:
    """Return the C of kernels, or their machine code.

    Args:
        built: Planned and not opened.
        node: The name of a node whose kernels are wanted; all if None.
        machine_code: Whether that is wanted rather than C.

    Raises:
        InvalidArgument: No kernel computes such a node.
        NoCompiler: Machine code is wanted, and there is no C compiler.
    """
    for found, refusal in built.on_reference().items():
        if node is not None and found.name == node:
            raise InvalidArgument(
                f"node '{node}' ({found.op_type}) has no native kernel: {refusal.reason}. It runs "
                "on its reference kernel; --shape gives sizes that the model leaves open"
            )
    parts = [
        part.draft.low
        for part in built.program.parts(NativePart.backend)
        if isinstance(part, NativePart)
    ]
    return (assembly_listing if machine_code else c_listing)(parts, node)
