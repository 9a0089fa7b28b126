"""``hagane build``: a model as a folder that programs load without hagane."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx_ir as ir

import hagane
from hagane.errors import InvalidArgument, UnsupportedModel
from hagane.graph import ModelSource
from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes
from hagane.machine import multiplies_bfloat16, usable_cores
from hagane.native import AT_RUN_TIME, Target
from hagane.native.run.tables import TYPES
from hagane.runtime.backends import NativeBackend
from hagane.runtime.pipeline import Built, ReadModel, build, read
from hagane.runtime.port import SizesUnknown
from hagane.runtime.settings import PRECISIONS, Settings
from hagane.ship.constants import parse_constants, with_constants
from hagane.ship.folder import MANIFEST, check_replaceable, replacing
from hagane.ship.library import (
    Sources,
    build_library,
    build_menoh,
    menoh_header,
    own_source,
    runtime_source,
)
from hagane.ship.manifest import VERSION, Argument, manifest_text, readme_text
from hagane.ship.program import RangeProgram, model_text, program_sources
from hagane.ship.quantize import QuantizeOptions, quantize
from hagane.ship.quantize.calibrate import Feed
from hagane.ship.ranges import (
    LARGEST,
    MOST_AXES,
    InputRange,
    all_shapes,
    bounds,
    count_shapes,
    input_ranges,
    name_ranges,
    open_axes,
    parse_ranges,
    with_most,
)
from hagane.ship.retrieved import model_source
from hagane.ship.sum import sum_of
from hagane.ship.targets import BuildTarget, targets_named
from hagane.ship.weights import WeightFile

# Where kernels need numbers for sizes, this many combinations of sizes get a program each.
MOST_PROGRAMS = 16
# Open sizes that nobody limits are as large as values of so many bytes allow.
DEFAULT_BYTES = 1 << 30


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


@dataclass(frozen=True, slots=True)
class Generated:
    """Everything of a build but the compiled library.

    Attributes:
        sources: The sources to compile.
        structure: Names all of it but the weights.
        weight_bytes: The size of the weights' file.
        inputs: Of the model.
        outputs: Of the model.
        peak_bytes: Memory of a run; None where only a run tells.
        notes: For the user.
        nodes: The operators of the model, with types, as texts.
    """

    sources: Sources
    structure: str
    weight_bytes: int
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    peak_bytes: int | None
    notes: tuple[str, ...]
    nodes: tuple[str, ...]


def build_model(
    model: Path,
    folder: Path,
    options: BuildOptions | None = None,
    notice: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Compile a model into a folder; return its manifest.

    The folder is replaced as a whole, or stays as it was.

    Args:
        model: An ONNX file, or a folder of chainer-trt's ModelRetriever.
        folder: Where to write: a new or empty folder, or a build.
        options: Settings.
        notice: Is told what was chosen.

    Raises:
        InvalidArgument: An option or the folder cannot be used.
        ModelError: The model cannot be built.
        NoCompiler: There is no C compiler, or it failed.
    """
    options = options or BuildOptions()
    *better, base = targets_named(options.target)
    if better and options.static:
        raise InvalidArgument("--static: an archive is for one target, and --target names several")
    library_name(options.name or Path(model).stem)
    check_replaceable(folder)
    options = replace(options, threads=options.threads or usable_cores())
    with replacing(folder) as fresh, _calibrated(Path(model), options) as source:
        options = replace(options, name=options.name or Path(model).stem)
        for target in better:
            (fresh / target.name).mkdir()
            alone = replace(options, menoh=False)
            _build_into(fresh / target.name, source, alone, target, lambda text: None)
        levels = [target.name for target in better]
        return _build_into(fresh, source, options, base, notice, levels)


@contextmanager
def _calibrated(model: Path, options: BuildOptions) -> Iterator[Path]:
    """Give the file that is built: for ``int8`` a model of bytes, which lives for the block."""
    if options.precision != "int8":
        yield model
        return
    if options.data is None:
        raise InvalidArgument(
            "--precision int8 needs --data FILE.py:make, which gives feeds to calibrate with; or "
            "build a file that hagane quantize wrote"
        )
    with TemporaryDirectory() as folder:
        made = Path(folder) / "bytes.onnx"
        quantize(model, options.data, made, QuantizeOptions("percentile"), where="--data")
        yield made


def _build_into(
    folder: Path,
    model: Path,
    options: BuildOptions,
    target: BuildTarget,
    notice: Callable[[str], None],
    levels: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the build for one target into a folder; return its manifest."""
    name = library_name(options.name or model.stem)
    weights = folder / f"{name}.weights"
    made = generate(model, options, target, weights)
    for text in made.notes:
        notice(text)
    library = folder / (f"lib{name}.a" if options.static else f"lib{name}.so")
    embedded = weights if options.embed_weights else None
    build_library(made.sources, target, library, weights=embedded)
    if options.menoh:
        (folder / "menoh").mkdir()
        (folder / "menoh" / "menoh.h").write_text(menoh_header(), encoding="utf-8")
        build_menoh(target, folder / "libmenoh.so")
    return _write_texts(folder, name, library, weights, made, options, target, levels)


def library_name(stem: str) -> str:
    """Return a name for a library: letters, digits and ``_``."""
    name = re.sub(r"[^A-Za-z0-9]", "_", stem)
    if not name:
        raise InvalidArgument("--name: expected letters and digits, got none")
    return name


def generate(
    model: Path,
    options: BuildOptions,
    target: BuildTarget,
    weights: Path,
    *,
    measured: bool = True,
) -> Generated:
    """Return the C of a build, and write its weights.

    Args:
        model: An ONNX file, or a folder of ModelRetriever's.
        options: How it is built.
        target: The machine that it is built for.
        weights: The file that is written.
        measured: Whether the engine, which takes a compiler, tells the memory of a run.
    """
    settings = _settings(options, target)
    source = with_constants(model_source(model), parse_constants(options.constants))
    first = read(source, settings)
    ranges = input_ranges(first.model.graph, first.types, parse_ranges(options.shapes))
    nodes = _node_texts(first)
    programs, notes = _programs(source, settings, first, ranges, options)
    inputs = tuple(map(_input_argument, _all_ranges(programs)))
    outputs = _output_arguments(programs)
    file = WeightFile(weights)
    sources = program_sources(programs, inputs, outputs, file)
    file.close()
    structure = _structure(sources, target)
    sources = Sources(
        sources.kernels,
        sources.tables
        + model_text(
            structure,
            len(inputs),
            len(outputs),
            len(programs),
            file.bytes,
            embedded=options.embed_weights,
        ),
    )
    values = [program.value_bytes(options.threads) if measured else None for program in programs]
    known = [size for size in values if size is not None]
    peak = file.bytes + max(known) if len(known) == len(values) else None
    return Generated(sources, structure, file.bytes, inputs, outputs, peak, tuple(notes), nodes)


def _node_texts(found: ReadModel) -> tuple[str, ...]:
    """Return the computation of a model as texts, content of weights left out."""
    types = found.types.types

    def text(value: ir.Value | None) -> str:
        return "nothing" if value is None else f"{value.name} {types.get(value)}"

    return tuple(
        f"{node.op_type} '{node.name}' of {', '.join(map(text, node.inputs))} to "
        f"{', '.join(map(text, node.outputs))}"
        for node in all_nodes(list(found.model.graph))
    )


def _settings(options: BuildOptions, target: BuildTarget) -> Settings:
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
    return Settings((NativeBackend(Target(target.level, options.threads, pairs)),))


def _programs(
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
    most = LARGEST
    while most > 1:
        tried = replace(program, inputs=with_most(program.inputs, most))
        size = tried.value_bytes(threads)
        if size is None or size <= DEFAULT_BYTES:
            break
        most //= 2
    return most


def _all_ranges(programs: Sequence[RangeProgram]) -> list[InputRange]:
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


def _input_argument(found: InputRange) -> Argument:
    dtype = str(found.dtype.numpy().name) if found.dtype.value in TYPES.values() else ""
    if dtype not in TYPES:
        raise UnsupportedModel(
            [f"input '{found.name}' has elements of {found.dtype.name}: a build takes numbers"]
        )
    shape = tuple(
        axis.least if axis is not None and axis.fixed else str(dim)
        for dim, axis in zip(found.dims, found.axes, strict=True)
    )
    return Argument(found.name, TYPES[dtype], dtype, shape, found.axes)


def _output_arguments(programs: Sequence[RangeProgram]) -> tuple[Argument, ...]:
    found: list[Argument] = []
    for program in programs:
        names = name_ranges(program.inputs)
        for i, value in enumerate(program.built.model.graph.outputs):
            type_ = program.built.types.types.get(value)
            if not isinstance(type_, TensorType) or type_.shape is None:
                raise UnsupportedModel(
                    [f"output '{value.name}' is {type_}: a build gives tensors of known rank"]
                )
            if type_.dtype.value not in TYPES.values() or len(type_.shape) > MOST_AXES:
                raise UnsupportedModel(
                    [f"output '{value.name}' is {type_}: a build cannot hold it"]
                )
            axes = tuple(bounds(type_.shape, names))
            shape = tuple(dim if isinstance(dim, int) else str(dim) for dim in type_.shape)
            made = Argument(
                str(value.name), type_.dtype.value, str(type_.dtype.numpy().name), shape, axes
            )
            if i >= len(found):
                found.append(made)
                continue
            joined = tuple(
                None
                if a is None or b is None
                else replace(a, least=min(a.least, b.least), most=max(a.most, b.most))
                for a, b in zip(found[i].axes, axes, strict=True)
            )
            shape = tuple(
                a if a == b else f"size_{k}"
                for k, (a, b) in enumerate(zip(found[i].shape, shape, strict=True))
            )
            found[i] = replace(found[i], shape=shape, axes=joined)
    return tuple(found)


def _structure(sources: Sources, target: BuildTarget) -> str:
    content = hashlib.sha256()
    for text in (
        target.name,
        runtime_source(),
        sources.tables,
        *(text for item in sorted(sources.kernels.items()) for text in item),
    ):
        content.update(f"{len(text)}\0{text}".encode("utf-8", "surrogatepass"))
    return content.hexdigest()[:32]


def _write_texts(
    folder: Path,
    name: str,
    library: Path,
    weights: Path,
    made: Generated,
    options: BuildOptions,
    target: BuildTarget,
    levels: Sequence[str],
) -> dict[str, Any]:
    """Write header, README and, last, the manifest; return it."""
    sums = {"library": sum_of(library.read_bytes())}
    content = weights.read_bytes()
    sums["weights"] = sum_of(content)
    digest = hashlib.sha256(content).hexdigest()
    place = None
    if options.embed_weights:
        place = library.read_bytes().find(content)
        assert place >= 0, "the linker keeps what is embedded in one piece"
        weights.unlink()
    manifest: dict[str, Any] = {
        "version": VERSION,
        "name": name,
        "target": target.name,
        "machine": target.machine,
        "needs": list(target.needs),
        "library": library.name,
        "weights": None if options.embed_weights else weights.name,
        "inputs": [each.as_json() for each in made.inputs],
        "outputs": [each.as_json() for each in made.outputs],
        "peak_bytes": made.peak_bytes,
        "build": made.structure,
        "precision": options.precision,
        "threads": options.threads,
        "shapes": list(options.shapes),
        "constants": list(options.constants),
        "levels": list(levels),
        "embedded": options.embed_weights,
        "weights_at": place,
        "nodes": list(made.nodes),
        "kernels": sorted(made.sources.kernels),
        "hagane": hagane.__version__,
        "weights_sha256": digest,
        "sums": sums,
    }
    (folder / "hagane.h").write_text(own_source("hagane.h"), encoding="utf-8")
    (folder / "README.md").write_text(
        readme_text(manifest, name, own_source("example.c")), encoding="utf-8"
    )
    (folder / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    return manifest
