"""``hagane.from_torch``: modules that PyTorch exports, where their source cannot be read."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.errors import CaptureError, InvalidArgument


def from_torch(
    module: Any, *examples: Any, dynamic_shapes: Any = None, opset: int | None = None, **named: Any
) -> ir.Model:
    """Return the model that PyTorch's own exporter makes of a module.

    It goes through ``torch.onnx.export(dynamo=True)``: branches of Python are decided by the
    examples, branches and loops on tensors are not followed. :func:`hagane.capture` reads them from
    the source; this is for modules whose source it cannot read.

    Args:
        module: A module of PyTorch, in the mode in which it is to run.
        examples: Tensors, one for each argument.
        dynamic_shapes: As for ``torch.export.export``: ``{"x": {0: "batch"}}``.
        opset: The opset; PyTorch's choice if None.
        named: Tensors by name.

    Raises:
        CaptureError: PyTorch cannot export it; its reason is quoted.
        InvalidArgument: It is no module, or the package onnxscript is missing.
    """
    try:
        import onnxscript  # noqa: F401
        import torch
    except ImportError as error:
        raise InvalidArgument(
            f"hagane.from_torch needs the package {error.name}: pip install 'hagane[export]'"
        ) from None
    if not isinstance(module, torch.nn.Module):
        raise InvalidArgument(
            f"hagane.from_torch: expected a module of PyTorch, got {type(module).__name__}; "
            "hagane.capture takes functions"
        )
    try:
        with torch.no_grad():
            program = torch.onnx.export(
                module,
                examples,
                kwargs=named or None,
                dynamo=True,
                dynamic_shapes=dynamic_shapes,
                opset_version=opset,
                verbose=False,
            )
    except Exception as error:
        reason = str(error).strip().splitlines() or [""]
        raise CaptureError([f"torch.onnx.export: {type(error).__name__}: {reason[0]}"]) from error
    assert program is not None
    model: ir.Model = program.model
    return model


__all__ = ["from_torch"]
