"""``hagane.compile`` and ``hagane.jit``: functions, models and steps of training as graphs."""

from __future__ import annotations

import sys
from typing import Any

from hagane.errors import InvalidArgument
from hagane.frontends.capture.interface.unchanged import unchanged
from hagane.machine.collector import collector_at_rest
from hagane.native import begin_engine
from hagane.runtime.chosen import level_of
from hagane.runtime.options import SessionOptions


def compile(
    model: Any = None,
    optimizer: Any = None,
    *,
    fullgraph: bool = False,
    explain: bool = False,
    dynamic: Any = None,
    memory_budget: int | float | str | None = None,
    accumulate: int = 1,
    precision: str | None = None,
    max_norm: float | None = None,
) -> Any:
    """Return a function or model that runs as a graph, with the signature of the original.

    The first call captures the source for its types, sizes and numbers; the graph runs on hagane's
    engine. Tensors of PyTorch go in and out without copies. A call that differs in something the
    graph took for known is captured anew, and the reason is said once: element types, ranks, sizes,
    numbers and texts among the arguments, attributes and globals that the program reads, modes of
    modules, hooks. Weights may be changed in place. A size that comes with a second value is left
    open from then on, except 0 and 1. A call that cannot become a graph runs in Python, with
    one notice (:class:`CompileNotice`) that names the line and the reason.

    Where PyTorch records gradients, the outputs carry them: ``backward`` runs the original again.
    A model in training runs in Python then.

    With an optimizer, a step of training is compiled: ``step = compile(loss, optimizer)``, then
    ``step(module, *tensors)`` (:class:`hagane.training.step.TorchStep`, or
    :class:`hagane.training.step.LinkStep` for links).

    Args:
        model: A function or a module; without one, a decorator is returned. With an optimizer, the
            function ``loss(module, *tensors)``.
        optimizer: An optimizer of ``torch.optim``, or of ``hagane.optimizers`` for links.
        fullgraph: Whether a call that cannot become a graph is an error.
        explain: Whether to print each captured graph, with its assumptions.
        dynamic: Sizes that are open from the start: all if True, none ever if False, or names by
            argument and axis, ``{"x": {0: "batch"}}``.
        memory_budget: With an optimizer: the most bytes that a step may take, beyond those at hand
            now, as a number or as text such as ``"500MB"``.
        accumulate: With an optimizer: after how many calls of the step parameters change, by the
            mean of the gradients of these calls.
        precision: With an optimizer: ``"bf16"`` or ``"fp16"`` if products and convolutions are to
            multiply such numbers; parameters, sums and all else stay float32. With the latter the
            loss is scaled on the way back.
        max_norm: With an optimizer of ``torch.optim``: the norm of all gradients together to which
            they are scaled, as by ``torch.nn.utils.clip_grad_norm_``.

    Raises:
        CaptureError: With ``fullgraph``, by a call: all that stands in the way, by file and line.
        InvalidArgument: ``model`` cannot be called.
    """
    if model is None:
        return lambda found: compile(
            found, optimizer, fullgraph=fullgraph, explain=explain, dynamic=dynamic,
            memory_budget=memory_budget, accumulate=accumulate, precision=precision,
            max_norm=max_norm,
        )  # fmt: skip
    if not callable(model):
        raise InvalidArgument(
            f"hagane.compile: expected a function or a module, got {type(model).__name__}"
        )
    if optimizer is not None:
        if fullgraph or explain or dynamic is not None:
            raise InvalidArgument(
                "hagane.compile: fullgraph, explain and dynamic are not for a step of training, "
                "which is always one graph"
            )
        _begin()
        with collector_at_rest():
            from hagane.training import step

        own = any(kind.__module__.startswith("hagane.nn.") for kind in type(optimizer).__mro__)
        make: Any = step.LinkStep if own else step.TorchStep
        if own and max_norm is not None:
            raise InvalidArgument(
                "hagane.compile: max_norm is for optimizers of torch.optim; give an optimizer of "
                "hagane.optimizers the hook GradientClipping"
            )
        clipped = {} if own else {"max_norm": max_norm}
        return make(
            model, optimizer, memory_budget=memory_budget, accumulate=accumulate,
            precision=precision, **clipped,
        )  # fmt: skip
    of_steps = {"memory_budget": memory_budget, "precision": precision, "max_norm": max_norm}
    of_steps["accumulate"] = None if accumulate == 1 else accumulate
    name = next((name for name, value in of_steps.items() if value is not None), None)
    if name is not None:
        raise InvalidArgument(f"hagane.compile: {name} is for a step of training; give optimizer=")
    _begin()
    with collector_at_rest():
        from hagane.capturing.compiled import compiled

    return compiled(model, fullgraph, explain, dynamic)


def _begin() -> None:
    """Have the engine made, on a machine that has none, while the modules of captures are read."""
    begin_engine(level_of(SessionOptions()), [unchanged] if "torch" in sys.modules else [])


def jit(function: Any = None, optimizer: Any = None, **options: Any) -> Any:
    """Compile a function, as a decorator: ``@hagane.jit``, ``@hagane.jit(optimizer=…)``.

    With an optimizer, the function is a loss of (model, *arrays) and becomes a step of training.

    Args:
        function: As for :func:`compile`.
        optimizer: As for :func:`compile`.
        options: The other arguments of :func:`compile`.
    """
    return compile(function, optimizer, **options)


__all__ = ["compile", "jit"]
