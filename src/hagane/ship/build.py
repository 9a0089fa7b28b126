"""``hagane build``: a model as a folder that programs load without hagane."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx_ir as ir

import hagane
from hagane.errors import InvalidArgument
from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes
from hagane.machine import usable_cores
from hagane.native import Choice, choice_to_json
from hagane.native.ready.plan_file import plan_bytes
from hagane.runtime.backends import NativeBackend
from hagane.runtime.pipeline import ReadModel, read
from hagane.ship.arguments import input_argument, output_arguments
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
from hagane.ship.options import BuildOptions, check_options, settings_of_build
from hagane.ship.program import RangeProgram, build_plan
from hagane.ship.quantize import quantize
from hagane.ship.ranged import all_ranges, range_programs
from hagane.ship.ranges import input_ranges, parse_ranges
from hagane.ship.record import built_text, functions_text
from hagane.ship.retrieved import model_source
from hagane.ship.sum import sum_of
from hagane.ship.targets import BuildTarget, targets_named
from hagane.ship.weights import WeightFile
from hagane.symbolic import Dim, evaluate, symbol, symbols_of

# Libraries that compilers link with programs.
_SYSTEM = frozenset(("c", "m", "pthread", "dl", "rt", "util", "gcc", "gcc_s"))

# Is told how far a build is, in words.
Progress = Callable[[str], None]


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
        choices: Forms of layers that were measured to be fastest.
    """

    sources: Sources
    structure: str
    weight_bytes: int
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    peak_bytes: int | None
    notes: tuple[str, ...]
    nodes: tuple[str, ...]
    choices: Mapping[str, Choice]


def build_model(
    model: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    options: BuildOptions | None = None,
    notice: Callable[[str], None] = lambda text: None,
    progress: Progress = lambda text: None,
) -> dict[str, Any]:
    """Compile a model into a folder; return its manifest.

    The folder is replaced as a whole, or stays as it was.

    Args:
        model: An ONNX file, or a folder of chainer-trt's ModelRetriever.
        folder: Where to write: a new or empty folder, or a build.
        options: Settings.
        notice: Is told of choices.
        progress: Is told how far the build is.

    Raises:
        InvalidArgument: An option or the folder cannot be used.
        ModelError: The model cannot be built.
        NoCompiler: There is no C compiler, or it failed.
    """
    model, folder = Path(model), Path(folder)
    options = options or BuildOptions()
    *better, base = targets_named(options.target)
    check_options(options, (*better, base))
    name = library_name(options.name or model.stem)
    if name in _SYSTEM:
        notice(f"-l{name} may mean the system's lib{name}: --name chooses another name")
    check_replaceable(folder)
    options = replace(options, threads=options.threads or usable_cores())
    with replacing(folder) as fresh, _calibrated(model, options) as source:
        options = replace(options, name=options.name or model.stem)
        for target in better:
            (fresh / target.name).mkdir()
            alone = replace(options, menoh=False)
            _build_into(fresh / target.name, source, alone, target, lambda text: None, progress)
        levels = [target.name for target in better]
        return _build_into(fresh, source, options, base, notice, progress, levels)


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
        quantize(model, options.data, made, options.quantization, where="--data")
        yield made


def _build_into(
    folder: Path,
    model: Path,
    options: BuildOptions,
    target: BuildTarget,
    notice: Callable[[str], None],
    progress: Progress,
    levels: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the build for one target into a folder; return its manifest."""
    name = library_name(options.name or model.stem)
    weights = folder / f"{name}.weights"
    progress(f"generating kernels for {target.name}")
    made = generate(model, options, target, weights)
    for text in made.notes:
        notice(text)
    library = folder / (f"lib{name}.a" if options.static else f"lib{name}.so")
    embedded = weights if options.embed_weights else None
    build_library(
        made.sources,
        target,
        library,
        weights=embedded,
        advance=lambda done, total: progress(
            f"compiling for {target.name}, {done} of {total} files"
        ),
    )
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
    settings = settings_of_build(options, target)
    source = with_constants(model_source(model), parse_constants(options.constants))
    first = read(source, settings)
    ranges = input_ranges(first.model.graph, first.types, parse_ranges(options.shapes))
    nodes = _node_texts(first)
    programs, notes = range_programs(source, settings, first, ranges, options)
    if options.tune is not None and len(programs) == 1 and not _has_numbers(programs[0]):
        notes.append("--tune measures layers of known sizes: those of open ones go by rule")
    inputs = tuple(map(input_argument, all_ranges(programs)))
    outputs = output_arguments(programs)
    file = WeightFile(weights)
    plan, kernels = build_plan(programs, inputs, outputs, file)
    sources = Sources(kernels, plan_bytes(plan), functions_text(plan.functions))
    structure = _structure(sources, target)
    built = built_text(structure, len(sources.plan), file.bytes, embedded=options.embed_weights)
    sources = replace(sources, text=sources.text + built)
    values = [_value_bytes(program, options) if measured else None for program in programs]
    known = [size for size in values if size is not None]
    peak = file.bytes + max(known) if len(known) == len(values) else None
    return Generated(
        sources,
        structure,
        file.bytes,
        inputs,
        outputs,
        peak,
        tuple(notes),
        nodes,
        _choices(programs),
    )


def _value_bytes(program: RangeProgram, options: BuildOptions) -> int | None:
    """Return the bytes of values of the largest run; None where only a run tells."""
    try:
        return program.value_bytes(options.threads)
    except MemoryError:
        largest = "; ".join(
            f"{each.name}="
            + ",".join("?" if axis is None else str(axis.most) for axis in each.axes)
            for each in program.inputs
        )
        raise InvalidArgument(
            f"--shape: with the largest sizes, {largest}, the values of a run are beyond any "
            "memory: choose smaller ranges"
        ) from None


def _has_numbers(program: RangeProgram) -> bool:
    return all(isinstance(dim, int) for each in program.inputs for dim in each.shape)


def _choices(programs: Sequence[RangeProgram]) -> dict[str, Choice]:
    """Return the forms of layers that were measured, of all programs."""
    found: dict[str, Choice] = {}
    for program in programs:
        for backend in program.built.backends:
            if isinstance(backend, NativeBackend):
                found.update(backend.target.choices)
    return found


def _node_texts(found: ReadModel) -> tuple[str, ...]:
    """Return the computation of a model as texts, without weights and names of sizes."""
    types = found.types.types
    names: dict[str, str] = {}

    def numbered(dim: Dim) -> Dim:
        for name in sorted(symbols_of(dim)):
            names.setdefault(name, f"size{len(names)}")
        return evaluate(dim, {name: symbol(names[name]) for name in symbols_of(dim)})

    def text(value: ir.Value | None) -> str:
        type_ = None if value is None else types.get(value)
        if isinstance(type_, TensorType) and type_.shape is not None:
            type_ = replace(type_, shape=tuple(map(numbered, type_.shape)))
        return "nothing" if value is None else f"{value.name} {type_}"

    return tuple(
        f"{node.op_type} '{node.name}' of {', '.join(map(text, node.inputs))} to "
        f"{', '.join(map(text, node.outputs))}"
        for node in all_nodes(list(found.model.graph))
    )


def _structure(sources: Sources, target: BuildTarget) -> str:
    content = hashlib.sha256(sources.plan)
    for text in (
        target.name,
        runtime_source(),
        sources.text,
        *(text for item in sorted(sources.kernels.items()) for text in item),
    ):
        content.update(f"{len(text)}\0{text}".encode("utf-8", "surrogatepass"))
    return content.hexdigest()[:32]


def checksums(library: bytes, weights: bytes) -> dict[str, Any]:
    """Return the keys of a manifest that tell whether its files are whole.

    Languages have SHA-256 at hand: a damaged library can end a process that loads it, so their
    bindings look at it before.
    """
    return {
        "library_sha256": hashlib.sha256(library).hexdigest(),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "sums": {"library": sum_of(library), "weights": sum_of(weights)},
    }


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
    code, content = library.read_bytes(), weights.read_bytes()
    place = None
    if options.embed_weights:
        place = code.find(content)
        assert place >= 0, "the linker keeps embedded bytes in one piece"
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
        "choices": {key: choice_to_json(found) for key, found in sorted(made.choices.items())},
        "nodes": list(made.nodes),
        "kernels": sorted(made.sources.kernels),
        "hagane": hagane.__version__,
        **checksums(code, content),
    }
    (folder / "hagane.h").write_text(own_source("hagane.h"), encoding="utf-8")
    (folder / "README.md").write_text(
        readme_text(manifest, name, own_source("example.c")), encoding="utf-8"
    )
    (folder / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    return manifest
