"""The settings of the pipeline, as the options of a session and the environment give them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hagane.errors import InvalidArgument
from hagane.machine import multiplies_bfloat16
from hagane.native import Target
from hagane.runtime.backends.native import NativeBackend
from hagane.runtime.chosen import is_native, level_of, threads_of
from hagane.runtime.options import GraphOptimizationLevel, SessionOptions
from hagane.runtime.port import Backend
from hagane.runtime.tuned import Tuning, TuningCache
from hagane.symbolic import Dim

PRECISIONS = ("fp32", "bf16")
_TUNE_SECONDS = {"fast": 10.0, "full": 120.0}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings that decide about the way of a model from its file to parts that run.

    Attributes:
        backends: In order of preference; the reference kernels take the rest.
        optimize: Whether the graph passes are applied.
        sizes: Numbers for named dimensions of the inputs.
        denoted: Numbers for dimensions of the inputs by denotation.
        shapes: Sizes or names for the axes of inputs by name.
        strict: Whether shapes that a file declares have to be those that inference finds.
    """

    backends: tuple[Backend, ...] = ()
    optimize: bool = True
    sizes: Mapping[str, int] = field(default_factory=dict)
    denoted: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[Dim | str]] = field(default_factory=dict)
    strict: bool = False


def settings_of(options: SessionOptions, logger: logging.Logger) -> Settings:
    """Return the settings of a session.

    Args:
        options: The caller's settings.
        logger: Where notices go, such as that of a precision that the processor lacks.

    Raises:
        InvalidArgument: An option has a value that it does not take.
    """
    _check_tuning(options)
    backends = tuple(options.backends)
    if is_native(options):
        backends = (*backends, _native(options, logger))
    optimize = options.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL
    return Settings(
        backends,
        optimize and bool(backends),
        options.dimension_overrides,
        options.denotation_overrides,
        strict=options.entries.get("session.strict_shape_type_inference") == "1",
    )


def _native(options: SessionOptions, logger: logging.Logger) -> NativeBackend:
    pairs = _rounds(options, logger)
    target = Target(level_of(options), threads_of(options), pairs)
    if options.tune == "off":
        return NativeBackend(target)
    seconds = _TUNE_SECONDS[options.tune] if options.tune_seconds is None else options.tune_seconds
    cache = TuningCache(options.tune_cache, logger)
    return NativeBackend(target, Tuning(options.tune, seconds, cache, logger))


def _check_tuning(options: SessionOptions) -> None:
    if options.tune not in ("off", *_TUNE_SECONDS):
        raise InvalidArgument(
            f"SessionOptions.tune: expected 'off', 'fast' or 'full', got {options.tune!r}"
        )
    seconds = options.tune_seconds
    if seconds is not None and not seconds > 0:
        raise InvalidArgument(
            f"SessionOptions.tune_seconds: expected a positive number, got {seconds!r}"
        )


def _rounds(options: SessionOptions, logger: logging.Logger) -> bool:
    """Whether products may be computed in bfloat16."""
    if options.precision not in PRECISIONS:
        raise InvalidArgument(
            f"SessionOptions.precision: expected {' or '.join(map(repr, PRECISIONS))}, "
            f"got {options.precision!r}"
        )
    if options.precision == "fp32":
        return False
    if multiplies_bfloat16(level_of(options)):
        return True
    logger.warning(
        "SessionOptions.precision is 'bf16', but this processor has no products of bfloat16 "
        "(avx512_bf16): the model runs in fp32"
    )
    return False
