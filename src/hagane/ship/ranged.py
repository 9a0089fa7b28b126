"""The programs of a build: one for all sizes, or one for each combination of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hagane.errors import UnsupportedModel
from hagane.graph import ModelSource
from hagane.native import AT_RUN_TIME
from hagane.runtime.pipeline import Built, ReadModel, build, read
from hagane.runtime.port import SizesUnknown
from hagane.runtime.settings import Settings
from hagane.ship.options import BuildOptions
from hagane.ship.program import RangeProgram
from hagane.ship.ranges import (
    LARGEST,
    InputRange,
    all_shapes,
    count_shapes,
    open_axes,
    with_most,
)

# Where kernels need numbers for sizes, this many combinations of sizes get a program each.
MOST_PROGRAMS = 16
# Open sizes that nobody limits are as large as values of so many bytes allow.
DEFAULT_BYTES = 1 << 30


def range_programs(
    model: ModelSource,
    settings: Settings,
    first: ReadModel,
    ranges: tuple[InputRange, ...],
    options: BuildOptions,
) -> tuple[list[RangeProgram], list[str]]:
    """Return one program for all sizes, or where kernels need numbers one for each of them."""
    unlimited = open_axes(ranges)
    notes: list[str] = []
    try:
        built = _build(model, settings, first, ranges, wait_for_sizes=True)
        program = RangeProgram.of(built, ranges)
        if unlimited:
            most = _default_most(program, options.threads)
            notes.append(
                f"{', '.join(unlimited)}: built for 1 to {most}; --shape chooses another range"
            )
            program = replace(program, inputs=with_most(ranges, most))
        return [program], notes
    except SizesUnknown:
        pass
    if unlimited:
        raise UnsupportedModel(
            [f"{_needing(model, settings, ranges)}: say which with {_shape_option(ranges)}"]
        )
    count = count_shapes(ranges)
    if count > MOST_PROGRAMS:
        raise UnsupportedModel(
            [
                f"{_needing(model, settings, ranges)}, and the ranges of --shape have {count} "
                f"combinations of sizes, {MOST_PROGRAMS} at most: choose smaller ones"
            ]
        )
    notes.append(f"some kernels need numbers for sizes: {count} programs, one for each")
    return [
        RangeProgram.of(_build(model, settings, None, shape), shape) for shape in all_shapes(ranges)
    ], notes


def _build(
    model: ModelSource,
    settings: Settings,
    read_model: ReadModel | None,
    ranges: Sequence[InputRange],
    *,
    wait_for_sizes: bool = False,
) -> Built:
    shapes = {each.name: each.shape for each in ranges}
    if read_model is None or any(each.shape != each.dims for each in ranges):
        read_model = read(model, replace(settings, shapes=shapes))
    return build(
        read_model.model,
        read_model.types,
        settings,
        wait_for_sizes=wait_for_sizes,
        ready=False,
    )


def _needing(model: ModelSource, settings: Settings, ranges: Sequence[InputRange]) -> str:
    """Return which node needs numbers for sizes, in words."""
    built = _build(model, settings, None, ranges)
    for node, refusal in built.refused.items():
        if refusal.needs_sizes or refusal.reason == AT_RUN_TIME:
            name = node.name or node.outputs[0].name
            return f"{node.op_type} '{name}' needs numbers for the sizes of the inputs"
    return "some operators need numbers for the sizes of the inputs"


def _shape_option(ranges: Sequence[InputRange]) -> str:
    return " ".join(
        f"--shape {each.name}="
        + ",".join("1" if axis is None else str(axis.most) for axis in each.axes)
        for each in ranges
        if any(axis is None for axis in each.axes)
    )


def _default_most(program: RangeProgram, threads: int) -> int:
    """Return the largest power of two for open sizes whose values fit the default memory."""

    def fits(power: int) -> bool:
        tried = replace(program, inputs=with_most(program.inputs, 1 << power))
        try:
            size = tried.value_bytes(threads)
        except MemoryError:
            return False
        return size is None or size <= DEFAULT_BYTES

    fitting, beyond = 0, LARGEST.bit_length()
    while beyond - fitting > 1:
        middle = (fitting + beyond) // 2
        fitting, beyond = (middle, beyond) if fits(middle) else (fitting, middle)
    return 1 << fitting


def all_ranges(programs: Sequence[RangeProgram]) -> list[InputRange]:
    """Return the inputs with the ranges of all programs together."""
    found = list(programs[0].inputs)
    for program in programs[1:]:
        for i, each in enumerate(program.inputs):
            axes = tuple(
                replace(a, least=min(a.least, b.least), most=max(a.most, b.most))
                for a, b in zip(found[i].axes, each.axes, strict=True)
                if a is not None and b is not None
            )
            found[i] = replace(found[i], axes=axes)
    return found
