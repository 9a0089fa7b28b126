"""Hooks that time, print and normalise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.hooks import FunctionHook
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.autograd.variable import Variable
from hagane.nn.model.hooks import LinkHook


class _Timed:
    """Times by name, in the order in which they were taken; inner times count in outer ones."""

    titled = "Name"

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self.call_history: list[tuple[str, float]] = []
        self._clock = clock
        self._begun: list[float] = []
        self._total = 0.0

    def begin(self) -> None:
        self._begun.append(self._clock())

    def end(self, name: str) -> None:
        seconds = self._clock() - self._begun.pop()
        self.call_history.append((name, seconds))
        if not self._begun:
            self._total += seconds

    def total_time(self) -> float:
        """Return the sum of the outer times, in seconds: inner ones are parts of them."""
        return self._total

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return seconds (``elapsed_time``) and number of calls (``occurrence``) by name."""
        found: dict[str, dict[str, Any]] = {}
        for name, seconds in self.call_history:
            entry = found.setdefault(name, {"elapsed_time": 0, "occurrence": 0})
            entry["elapsed_time"] += seconds
            entry["occurrence"] += 1
        return found

    def print_report(self, unit: str = "auto", file: TextIO | None = None) -> None:
        """Print a table of times.

        Args:
            unit: ``auto``, ``sec``, ``ms``, ``us`` or ``ns``, or ``auto_foreach``.
            file: Where to, by default the standard output.
        """
        scales = {"sec": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
        if unit not in ("auto", "auto_foreach", *scales):
            raise ValueError(f"unit: expected 'auto' or one of {sorted(scales)}, got {unit!r}")
        entries = self.summary()
        rows = [(self.titled, "ElapsedTime", "Occurrence")]
        largest = max((entry["elapsed_time"] for entry in entries.values()), default=0.0)
        for name, entry in entries.items():
            seconds = entry["elapsed_time"]
            chosen = unit
            if unit.startswith("auto"):
                chosen = _unit_for(largest if unit == "auto" else seconds)
            shown = f"{seconds * scales[chosen]:3.2f}{chosen}"
            rows.append((name, shown, str(entry["occurrence"])))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        for row in rows:
            text = "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
            print(text, file=sys.stdout if file is None else file)


def _unit_for(seconds: float) -> str:
    return next(
        (u for u, least in (("sec", 1), ("ms", 1e-3), ("us", 1e-6)) if seconds >= least), "ns"
    )


class FunctionTimer(_Timed, FunctionHook):
    """Takes the times of functions, forward and back."""

    name = "TimerHook"
    titled = "FunctionName"

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        """Begin."""
        self.begin()

    def forward_postprocess(self, function: Any, in_data: Any) -> None:
        """End."""
        self.end(function._impl_name)

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        """Begin."""
        self.begin()

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        """End."""
        self.end(function._impl_name)


class LinkTimer(_Timed, LinkHook):
    """Takes the times of links."""

    name = "TimerHook"
    titled = "LinkName"

    def forward_preprocess(self, args: Any) -> None:
        """Begin."""
        self.begin()

    def forward_postprocess(self, args: Any) -> None:
        """End."""
        self.end(type(args.link).__name__)


class PrintHook(FunctionHook):
    """Prints the inputs of functions, and the gradients of their outputs.

    Args:
        sep: Kept for programs that give it.
        end: The end of a line.
        file: Where to.
        flush: Whether the file is flushed after each function.
    """

    name = "PrintHook"

    def __init__(
        self, sep: Any = None, end: str = "\n", file: TextIO = sys.stdout, flush: bool = True
    ):
        self.sep = sep
        self.end = end
        self.file = file
        self.flush = flush

    def _print(self, text: str) -> None:
        print(text, end=self.end, file=self.file)

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        """Print the inputs."""
        self._print(f"function\t{function.label}")
        self._print("input data")
        for array in in_data:
            self._print("(removed)" if array is None else Variable(array).debug_print())
        if self.flush:
            self.file.flush()

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        """Print the inputs and gradients."""
        self._print(f"function\t{function.label}")
        self._print("input data")
        for array in in_data:
            self._print("(removed)" if array is None else Variable(array).debug_print())
        self._print("output gradient")
        for array in out_grad:
            if array is None:
                self._print("(removed)")
            else:
                self._print(Variable(np.zeros_like(array), grad=array).debug_print())
        if self.flush:
            self.file.flush()


class WeightStandardization(LinkHook):
    """Standardizes each filter of a link before it runs (Qiao et al. 2019).

    Args:
        eps: Added to variances.
        weight_name: The weight's name.
        name: The hook's name.
    """

    name = "WeightStandardization"

    def __init__(self, *, eps: float = 1e-5, weight_name: str = "W", name: str | None = None):
        self.eps = eps
        self.weight_name = weight_name
        if name is not None:
            self.name = name

    def __enter__(self) -> Any:
        raise NotImplementedError(
            "This hook is not supposed to be used as context manager: use link.add_hook"
        )

    def added(self, link: Any) -> None:
        """Check that the link has the weight."""
        _weight(link, self.weight_name)

    def forward_preprocess(self, args: Any) -> None:
        """Put the standardized weight in the place of the weight."""
        link = args.link
        _fill(link, self.weight_name, args.args[0])
        weight = getattr(link, self.weight_name)
        self._original = weight
        rows = F.reshape(weight, (weight.shape[0], -1))
        mean = F.mean(rows, axis=1, keepdims=True)
        centred = rows - F.broadcast_to(mean, rows.shape)
        variance = F.mean(centred * centred, axis=1, keepdims=True)
        made = centred / F.broadcast_to(F.sqrt(variance + self.eps), rows.shape)
        link.__dict__[self.weight_name] = F.reshape(made, weight.shape)

    def forward_postprocess(self, args: Any) -> None:
        """Put the weight back."""
        args.link.__dict__[self.weight_name] = self._original


def _weight(link: Any, name: str) -> Any:
    if not hasattr(link, name):
        raise ValueError(f"Weight '{name}' does not exist in {type(link).__name__}")
    return getattr(link, name)


def _fill(link: Any, name: str, x: Any) -> None:
    """Fill a weight whose sizes come with the first input, of (batch, channels, …)."""
    if getattr(link, name).array is None:
        link._initialize_params(x.shape[1] if len(x.shape) > 2 else int(np.prod(x.shape[1:])))


class SpectralNormalization(LinkHook):
    """Divides the weight of a link by its largest singular value (Miyato et al. 2018).

    Args:
        n_power_iteration: Steps of power iteration each time.
        eps: Added to lengths.
        use_gamma: Whether the result is scaled by a learned parameter.
        factor: Divides the singular value.
        weight_name: The weight's name.
        name: The hook's name.

    Attributes:
        v: The right singular vector that was found last, None before.
    """

    name = "SpectralNormalization"
    v: Any = None

    def __init__(
        self,
        n_power_iteration: int = 1,
        eps: float = 1e-6,
        use_gamma: bool = False,
        factor: float | None = None,
        weight_name: str = "W",
        name: str | None = None,
    ):
        if n_power_iteration <= 0:
            raise ValueError(f"n_power_iteration must be positive, got {n_power_iteration}")
        self.n_power_iteration = n_power_iteration
        self.eps = eps
        self.use_gamma = use_gamma
        self.factor = factor
        self.weight_name = weight_name
        self.vector_name = f"{weight_name}_u"
        if name is not None:
            self.name = name

    def __enter__(self) -> Any:
        raise NotImplementedError(
            "This hook is not supposed to be used as context manager: use link.add_hook"
        )

    def added(self, link: Any) -> None:
        """Prepare the link, if its weight is there already."""
        if _weight(link, self.weight_name).array is not None:
            self._prepare(link)

    def deleted(self, link: Any) -> None:
        """Take away the additions to the link."""
        delattr(link, self.vector_name)
        if self.use_gamma:
            del link.gamma

    def _prepare(self, link: Any) -> None:
        weight = getattr(link, self.weight_name)
        matrix = _rows(link, weight)
        drawn = np.random.normal(size=(matrix.shape[0],)).astype(weight.dtype)
        setattr(link, self.vector_name, drawn)
        link.register_persistent(self.vector_name)
        if self.use_gamma:
            largest = np.linalg.svd(matrix.array.astype(np.float64), compute_uv=False)[0]
            with link.init_scope():
                link.gamma = Parameter(np.asarray(largest, weight.dtype))

    def forward_preprocess(self, args: Any) -> None:
        """Put the normalized weight in the place of the weight."""
        link = args.link
        _fill(link, self.weight_name, args.args[0])
        if not hasattr(link, self.vector_name):
            self._prepare(link)
        weight = getattr(link, self.weight_name)
        self._original = weight
        matrix = _rows(link, weight)
        u = getattr(link, self.vector_name)
        if config.in_recomputing:
            v = self.v  # the vectors are those of the first time
        else:
            u, v = self._vectors(matrix.array, u)
            self.v = v
            if config.train:
                setattr(link, self.vector_name, u)
        sigma = F.sum(F.matmul(F.matmul(u.reshape(1, -1), matrix), v.reshape(-1, 1)))
        if self.factor is not None:
            sigma = sigma / self.factor
        made = weight / F.broadcast_to(sigma, weight.shape)
        if self.use_gamma:
            made = made * F.broadcast_to(link.gamma, weight.shape)
        link.__dict__[self.weight_name] = made

    def _vectors(self, matrix: Any, u: Any) -> tuple[Any, Any]:
        """Return the singular vectors, left and right, after the steps of iteration."""
        v = u
        for _ in range(self.n_power_iteration):
            v = u @ matrix
            v = v / (np.linalg.norm(v) + self.eps)
            u = matrix @ v
            u = u / (np.linalg.norm(u) + self.eps)
        return u.astype(matrix.dtype), v.astype(matrix.dtype)

    def forward_postprocess(self, args: Any) -> None:
        """Put the weight back."""
        args.link.__dict__[self.weight_name] = self._original


def _rows(link: Any, weight: Any) -> Any:
    """Return a weight as a matrix of one row an output."""
    if not weight.size:
        raise ValueError(
            f"{type(link).__name__}: expected a weight with elements, got {weight.shape}"
        )
    if type(link).__name__.startswith("Deconvolution"):
        weight = F.swapaxes(weight, 0, 1)
    return F.reshape(weight, (weight.shape[0], weight.size // weight.shape[0]))
