"""A program's inputs and outputs bound once, so that a run is one C call."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hagane.machine import CodeCache, Compiler, NoCompiler, find_compiler
from hagane.native.control import Loop
from hagane.native.engine import c_source
from hagane.native.segment import Segment
from hagane.ops.definition import Array

Caller = Callable[[Mapping[str, Any]], "list[Array] | None"]

# Runs shorter than this keep other Python threads waiting; letting go would cost more.
_SHORT_NS = 20_000.0


def make_caller(segment: Segment, names: Sequence[str], order: Sequence[int]) -> Caller | None:
    """Return a function from a feed to a segment's outputs, or None where there can be none.

    The function returns None for a feed that does not fit as it is.

    Args:
        segment: Compiled kernels of fixed shapes.
        names: The name of each of its inputs.
        order: Which of its outputs to return, in order.
    """
    if segment.may_mismatch or segment.growing:
        return None
    try:
        module = _extension(find_compiler())
    except (NoCompiler, ImportError, OSError):
        return None  # the slower way through ctypes serves
    context = segment.context({})
    table = context.table.ctypes.data

    def port(
        name: str | None, index: int, shape: tuple[int, ...], dtype: Any, patches: Sequence[Any]
    ) -> tuple[str | None, int, tuple[int, ...], list[tuple[int, int]]]:
        places = [(table + 8 * slot, offset) for slot, number, offset in patches if number == index]
        return name, np.dtype(dtype).num, shape, places

    inputs = [
        port(name, i, tuple(int(dim) for dim in shape), dtype, context.input_patches)
        for i, (name, (_, shape, dtype)) in enumerate(zip(names, segment.inputs, strict=True))
    ]
    outputs = [
        port(
            None,
            i,
            context.output_shapes[i][0],
            context.output_shapes[i][1],
            context.output_patches,
        )
        for i in order
    ]
    # A loop whose turns nobody knows may take any time.
    endless = any(isinstance(c, Loop) and not isinstance(c.turns, int) for c in segment.controls)
    run = segment.engine.address("hg_run")
    made: Caller = module.make(
        run,
        context.program,
        inputs,
        outputs,
        context.fail,
        context,
        endless or segment.estimate.whole > _SHORT_NS,
    )
    return made


@cache
def _extension(compiler: Compiler) -> Any:
    source = c_source("call.c")
    include = (sysconfig.get_paths()["include"], np.get_include())
    if not (Path(include[0]) / "Python.h").exists():
        raise ImportError("Python's headers are not installed")
    flags = ("-O2", "-std=gnu11", "-fPIC", "-w", *(f"-I{folder}" for folder in include))
    key = "\0".join((source, np.__version__, *flags, *compiler.command, compiler.version))

    def build(folder: Path) -> Path:
        written = folder / "call.c"
        written.write_text(source, encoding="utf-8")
        library = folder / "call.so"
        compiler.build([written], library, flags)
        return library

    def load(path: Path) -> Any:
        loader = importlib.machinery.ExtensionFileLoader("hagane_call", str(path))
        spec = importlib.util.spec_from_loader("hagane_call", loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module

    return CodeCache("native").load(key, build, load)
