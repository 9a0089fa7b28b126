"""The settings of a build, and those of the pipeline that follow from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hagane.errors import InvalidArgument
from hagane.machine import multiplies_bfloat16
from hagane.native import Choice, Target
from hagane.runtime.backends import NativeBackend
from hagane.runtime.settings import PRECISIONS, Settings
from hagane.runtime.tuned import Tuning, TuningCache
from hagane.ship.quantize import QuantizeOptions
from hagane.ship.quantize.calibrate import Feed
from hagane.ship.targets import BuildTarget

_LOGGER = logging.getLogger("hagane")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The settings of a build.

    Attributes:
        shapes: ``INPUT=1..8,3,224,224`` each.
        constants: ``INPUT=16000`` each: inputs that the build has as constants.
        data: Returns feeds ``{input: array}``, for ``int8``.
        target: A name of ``target_named``; this machine if None. Of several, separated by commas,
            a program takes the first that its processor has; the last needs least.
        precision: ``fp32``, ``bf16``, or ``int8``, which ``data`` calibrates.
        static: Make an archive.
        embed_weights: Put the weights into the library.
        name: Of the library; the model file's stem if None.
        threads: How many threads kernels are divided for; the cores here if 0.
        menoh: Add the functions of Menoh.
        tune: Seconds for measuring the forms of large layers on this machine; None: forms are
            chosen by rule, or by the tuning cache if one is named.
        tuning_cache: A file of such findings, which may come from another machine with the same
            processor; that of the user if empty.
        choices: Forms of layers that are settled, as in the build that is refitted.
        quantization: How ``int8`` is calibrated.
    """

    shapes: tuple[str, ...] = ()
    target: str | None = None
    precision: str = "fp32"
    static: bool = False
    embed_weights: bool = False
    name: str | None = None
    threads: int = 0
    menoh: bool = False
    constants: tuple[str, ...] = ()
    data: Callable[[], Iterable[Feed]] | None = None
    tune: float | None = None
    tuning_cache: str = ""
    choices: Mapping[str, Choice] = field(default_factory=dict)
    quantization: QuantizeOptions = field(default_factory=QuantizeOptions)


def check_options(options: BuildOptions, targets: tuple[BuildTarget, ...]) -> None:
    """Raise InvalidArgument for options that do not fit each other, or the targets."""
    if len(targets) > 1 and options.static:
        raise InvalidArgument("--static: an archive is for one target, and --target names several")
    if options.quantization != QuantizeOptions() and options.precision != "int8":
        raise InvalidArgument(
            "--method and the other options of calibration are for --precision int8, "
            f"got --precision {options.precision}"
        )
    if options.tune is None:
        return
    if not options.tune > 0:
        raise InvalidArgument(f"--tune: expected seconds above 0, got {options.tune:g}")
    for target in targets:
        if not target.here:
            raise InvalidArgument(
                f"--tune measures on this machine, which is no {target.name}: build on such a "
                "machine, or name a file that was measured there with --tuning-cache"
            )


def settings_of_build(options: BuildOptions, target: BuildTarget) -> Settings:
    """Return the settings of the pipeline for one target.

    Raises:
        InvalidArgument: The precision is unknown, or the target does not have it.
    """
    known = (*PRECISIONS, "int8")
    if options.precision not in known:
        raise InvalidArgument(
            f"--precision: expected one of {', '.join(known)}, got '{options.precision}'"
        )
    pairs = options.precision == "bf16"
    if pairs and not multiplies_bfloat16(target.level):
        raise InvalidArgument(
            f"--precision bf16: the target {target.name} has no products of bfloat16; "
            "expected one as x86-64-v4+bf16"
        )
    tuning = None
    if options.tune is not None or options.tuning_cache:
        kind = f"builds for {target.name}, {options.threads} threads, {options.precision}"
        cache = TuningCache(options.tuning_cache, _LOGGER, kind, elsewhere=options.tune is None)
        tuning = Tuning("fast", options.tune or 0.0, cache, _LOGGER, shipped=True)
    target_ = Target(target.level, options.threads, pairs, options.choices)
    return Settings((NativeBackend(target_, tuning),))
