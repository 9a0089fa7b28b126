"""Loaded parts in folders, from where other processes map code and packed weights as they are.

Sessions of the cache are written as a plan (``ready/plan_file.py``), programs for single shapes with
their formulas and buffers, by which their runs are explained.

The folder is an entry of the cache of compiled code, which verifies it; ``files.py`` has the format that
is carried to other machines.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hagane.machine import cpu_features
from hagane.machine.cache import is_whole
from hagane.native.kernels.packing import Packing, zeros
from hagane.native.kernels.tensor import Buffer
from hagane.native.ready.extension import load_extension
from hagane.native.ready.mapped import Mapped, Packed, WeightStore
from hagane.native.ready.part import CODE, PLAN, WEIGHTS
from hagane.native.ready.plan_file import (
    FORMAT,
    Plan,
    PlanArgument,
    PlanProgram,
    PlanStep,
    plan_bytes,
)
from hagane.native.run.codec import Reader, Writer
from hagane.native.run.compiled import Compiled, Weight
from hagane.native.run.loaded import Loaded
from hagane.native.run.planned import plan_part

_TABLES = "tables.json"


def may_be_kept(loaded: Loaded, *, in_part: bool = False) -> bool:
    """Whether a part can be used by other processes: none of it belongs to this one.

    Args:
        loaded: The part.
        in_part: Whether some of its weights may lie with another program.
    """
    from hagane.native.rules.packings import OF_ONE_PROCESS

    packings = (weight.packing for weight in loaded.plain.weights)
    whole = in_part or loaded.is_whole
    return whole and not any(packing.function in OF_ONE_PROCESS for packing in packings)


def write_ready(
    loaded: Loaded,
    folder: Path,
    inputs: Sequence[PlanArgument],
    outputs: Sequence[PlanArgument],
    own: Sequence[int],
    order: Sequence[int],
) -> dict[str, Any]:
    """Write a part that is a whole model into a folder; return facts about it, as JSON has them.

    Args:
        loaded: A part that may be kept, of which no weight lies with another program.
        folder: Where to.
        inputs: Of the model.
        outputs: Of the model.
        own: Which of the inputs the part reads, in its order.
        order: Which of the part's outputs are those of the model.
    """
    plain, rows = loaded.plain, loaded.table.rows
    offsets = {weight.buffer: weight.offset for weight in plain.weights}
    extension = load_extension()
    assert extension is not None, "frames need it"
    packed = loaded.packed()
    symbols = sorted({kernel.symbol for kernel in plain.kernels if kernel.symbol is not None})
    places = [offsets[buffer] for buffer in rows.weights]
    part = plan_part(rows, plain.kernels, places, symbols.index)
    written = tuple(range(len(inputs), len(inputs) + len(loaded.gives)))
    program = PlanProgram(
        slots=len(inputs) + len(written),
        steps=(PlanStep(0, tuple(own), written),),
        constants=(),
        outputs=tuple(written[i] for i in order),
        least=tuple(size for each in inputs for size in each.least),
        most=tuple(size for each in inputs for size in each.most),
    )
    plan = Plan(tuple(inputs), tuple(outputs), (program,), (part,), tuple(symbols), packed.nbytes)
    shutil.copyfile(plain.library, folder / CODE)
    (folder / WEIGHTS).write_bytes(packed)
    (folder / PLAN).write_bytes(plan_bytes(plan))
    return {
        "needs": sorted(plain.needs),
        "engine": str(loaded.engine.path),
        "extension": extension.__file__,
        "threads": plain.threads,
        "endless": loaded.is_endless,
        "marks": [(loaded.marks[b], at) for b, at in offsets.items() if b in loaded.marks],
    }


def write_loaded(loaded: Loaded, folder: Path, about: Any) -> None:
    """Write a part into an empty folder.

    Of weights that lie with another program, their marks are written.

    Args:
        loaded: A part that may be kept.
        folder: Where to.
        about: Facts of it, as JSON.
    """
    plain, writer = loaded.plain, Writer()
    part = {
        "threads": plain.threads,
        "kernels": writer.write(plain.kernels),
        "inputs": writer.write(plain.inputs),
        "outputs": writer.write(plain.outputs),
        "equal": writer.write(plain.equal),
        "weights": [
            [writer.write(weight.buffer), weight.offset, loaded.marks.get(weight.buffer)]
            for weight in plain.weights
        ],
        "elsewhere": [
            [writer.write(buffer), loaded.marks[buffer]] for buffer in loaded.buffers_elsewhere()
        ],
        "weight_bytes": plain.weight_bytes,
        "needs": sorted(plain.needs),
        "engine": str(loaded.engine.path),
    }
    tables = {"version": FORMAT, "about": about, "part": part, "buffers": writer.table()}
    (folder / _TABLES).write_text(json.dumps(tables), encoding="utf-8")
    shutil.copyfile(plain.library, folder / CODE)
    (folder / WEIGHTS).write_bytes(loaded.packed())


def read_about(folder: Path) -> Any:
    """Return the data beside a part, and its tables."""
    tables = json.loads((folder / _TABLES).read_text(encoding="utf-8"))
    return tables["about"], tables


def read_loaded(folder: Path, tables: Any, store: WeightStore | None = None) -> Loaded | None:
    """Return the part of a folder, or None if a part of it is gone.

    Args:
        folder: Where it was written.
        tables: Of ``read_about``.
        store: Where weights of other programs are found, and its own are left.
    """
    part = tables["part"]
    engine = Path(part["engine"])
    if tables["version"] != FORMAT or not frozenset(part["needs"]) <= cpu_features():
        return None
    if not is_whole(engine.parent):
        return None
    store = WeightStore() if store is None else store
    reader = Reader(tables["buffers"])
    packed = Packing(zeros, ())
    weights = [(reader.read(buffer), int(at), mark) for buffer, at, mark in part["weights"]]
    elsewhere: dict[Buffer, Packed] = {}
    for buffer, mark in part["elsewhere"]:
        found = store.get(mark)
        if found is None:
            return None
        elsewhere[reader.read(buffer)] = found
    compiled = Compiled(
        frozenset(part["needs"]),
        int(part["threads"]),
        reader.read(part["kernels"]),
        reader.read(part["inputs"]),
        reader.read(part["outputs"]),
        reader.read(part["equal"]),
        tuple(Weight(buffer, at, packed) for buffer, at, _ in weights),
        int(part["weight_bytes"]),
        (),
        folder / CODE,
        engine,
    )
    return Loaded(
        compiled,
        weights=Mapped(folder / WEIGHTS),
        store=store,
        elsewhere=elsewhere,
        marks={buffer: mark for buffer, _, mark in weights if mark is not None},
    )
