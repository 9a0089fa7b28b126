"""Options of a session and of a run."""

from __future__ import annotations

import copy
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from hagane.ops.definition import Array
    from hagane.runtime.port import Backend

Precision: TypeAlias = Literal["fp32", "bf16"]
Tuning: TypeAlias = Literal["off", "fast", "full"]


class GraphOptimizationLevel(enum.IntEnum):
    """How far a graph is rewritten before it runs."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99

    def __str__(self) -> str:  # as ONNX Runtime's prints
        return f"{type(self).__name__}.{self.name}"


class ExecutionMode(enum.IntEnum):
    """Whether nodes may run side by side."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1

    def __str__(self) -> str:  # as ONNX Runtime's prints
        return f"{type(self).__name__}.{self.name}"


def _known(options: Any, name: str) -> None:
    """Refuse an attribute that the options lack, which would otherwise have no effect."""
    names = [one for one in type(options).__dataclass_fields__ if not one.startswith("_")]
    if name in type(options).__dataclass_fields__ or isinstance(
        getattr(type(options), name, None), property
    ):
        return
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; they have: {', '.join(names)}"
    raise AttributeError(f"{type(options).__name__} has no attribute '{name}'{hint}")


@dataclass(eq=False)
class SessionOptions:
    """Settings of a session, by the names that ONNX Runtime gives them.

    Attributes:
        intra_op_num_threads: Threads of one operator; 0 takes every core this process may use.
        inter_op_num_threads: Accepted; nodes run one after another.
        graph_optimization_level: Accepted; the reference engine runs the graph as it is.
        execution_mode: Accepted; nodes run one after another.
        enable_profiling: Record each node's time; ``end_profiling`` writes them to a file.
        profile_file_prefix: Where that file goes.
        log_severity_level: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.
        log_verbosity_level: Accepted.
        logid: Name of the logger below ``hagane``.
        enable_mem_pattern: Accepted.
        enable_mem_reuse: Accepted; each tensor is freed at its last use.
        enable_cpu_mem_arena: Accepted.
        optimized_model_filepath: Where to write the model in its current form, if anywhere.
        use_deterministic_compute: Accepted; runs are deterministic.
        precision: ``"fp32"``, or ``"bf16"``: products of constant weights may then be computed
            of numbers rounded to bfloat16 (sums stay in float32) where that is faster; on a
            processor without such instructions it says so and changes nothing.
        tune: ``"off"``: forms of kernels are chosen by rule. ``"fast"`` and ``"full"``: those of
            large layers are measured when the session is made, the likely ones or all; earlier
            measurements are taken from the cache.
        tune_seconds: Time for that; 10 or 120 if None. Layers that are left are chosen by rule.
        tune_cache: The file in which choices are kept; one in the user's cache folder if empty.
        specialize: Whether a shape of inputs that comes again and again gets kernels of its own,
            compiled beside the runs; the first run of any shape compiles nothing either way.
        backends: Backends that are asked before hagane's own which nodes they compute, in order
            of preference (``docs/backends.md``).
    """

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    enable_profiling: bool = False
    profile_file_prefix: str = "hagane_profile"
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_cpu_mem_arena: bool = True
    optimized_model_filepath: str = ""
    use_deterministic_compute: bool = False
    precision: Precision = "fp32"
    tune: Tuning = "off"
    tune_seconds: float | None = None
    tune_cache: str = ""
    specialize: bool = True
    backends: Sequence[Backend] = ()
    _dimensions: dict[str, int] = field(default_factory=dict)
    _denotations: dict[str, int] = field(default_factory=dict)
    _entries: dict[str, str] = field(default_factory=dict)

    def __setattr__(self, name: str, value: Any) -> None:
        _known(self, name)
        object.__setattr__(self, name, value)

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Fix the named dimension of the inputs to a size."""
        self._dimensions[dim_name] = dim_value

    def add_free_dimension_override_by_denotation(
        self, dim_denotation: str, dim_value: int
    ) -> None:
        """Fix the dimensions of the inputs with a denotation, such as ``DATA_BATCH``, to a size."""
        self._denotations[dim_denotation] = dim_value

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep a setting by key; keys of other runtimes have no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Return a setting kept by key."""
        return self._entries[key]

    @property
    def entries(self) -> dict[str, str]:
        """The settings kept by key."""
        return dict(self._entries)

    @property
    def dimension_overrides(self) -> dict[str, int]:
        """The named dimensions that were fixed."""
        return dict(self._dimensions)

    @property
    def denotation_overrides(self) -> dict[str, int]:
        """The sizes that were fixed by denotation."""
        return dict(self._denotations)


def copy_of(options: SessionOptions) -> SessionOptions:
    """Return the same settings, which later changes of the given ones leave as they are."""
    made = copy.copy(options)
    made._dimensions, made._denotations = dict(options._dimensions), dict(options._denotations)
    made._entries, made.backends = dict(options._entries), tuple(options.backends)
    return made


@dataclass(eq=False)
class RunOptions:
    """Settings of one run.

    Attributes:
        terminate: Set to True, from another thread too, to end the run at the next node, or at
            the next turn of a loop.
        log_severity_level: 0 verbose to 4 fatal.
        log_verbosity_level: Accepted.
        logid: Accepted.
        only_execute_path_to_fetches: Accepted.
    """

    terminate: bool = False
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    _stop: Array = field(default_factory=lambda: np.zeros(1, np.int64), init=False, repr=False)
    _entries: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.terminate = self.terminate

    def __setattr__(self, name: str, value: Any) -> None:
        _known(self, name)
        object.__setattr__(self, name, value)
        if name == "terminate" and "_stop" in self.__dict__:
            self._stop[0] = bool(value)

    @property
    def stop(self) -> Array:
        """One number, not 0 once ``terminate`` is true: read by compiled loops."""
        return self._stop

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep a setting by key; keys of other runtimes have no effect."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Return a setting kept by key."""
        return self._entries[key]
