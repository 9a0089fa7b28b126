"""Reference kernels that the ``onnx`` package already has right."""

from __future__ import annotations

from functools import cache
from typing import Any

from hagane.graph.opsets import CURRENT_OPSETS
from hagane.ops.definition import Kernel


def onnx_kernel(name: str, domain: str = "") -> Kernel:
    """Return ``onnx.reference``'s kernel of an operator; it is loaded at its first call."""

    @cache
    def implementation() -> Any:
        from onnx.reference.ops import load_op

        return load_op(domain, name, CURRENT_OPSETS[domain])

    def reference(*inputs: Any, attributes: dict[str, Any], n_outputs: int) -> Any:
        return implementation().eval(*inputs, n_outputs=n_outputs, **attributes)

    return reference
