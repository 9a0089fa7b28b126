"""How many models of transformers, timm, torchvision and diffusers are typed and become graphs.

    python benchmarks/capture_libraries.py [--library timm] [--only bert,vit] [--export]
        [--limit 120] [--output table.json]

Models are small, have random weights and stand in evaluation mode. For each: whether
``hagane check`` types it without an error or an open question, and its result has the shapes that
running gives; whether ``hagane.capture`` makes a graph; whether this graph, in ONNX
Runtime, returns what the model returns at three sizes; with ``--export`` the same of
``torch.export`` (``strict=False``, open batch and sequence). Each model runs in a process of its
own with a time limit. Obstacles follow, the most frequent first.

    python benchmarks/capture_libraries.py --wide transformers:0:100 --wide timm:0:50

runs models that nobody chose (``library_wide.py``), those from one place of a library's list to
another.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import multiprocessing
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from library_models import DETECTORS, SIZES, Case, cases, import_torchvision
from library_wide import wide

import hagane
from hagane.graph import to_proto
from hagane.graph.types import dtype_name
from hagane.symbolic.substitute import evaluate

# Models whose results have as many rows as their data ask for.
DATA_DEPENDENT = frozenset(DETECTORS)
_TYPE = re.compile(r"(\w+)\[(.*)\]")


def drawn(case: Case, types: Any, turn: int) -> Any:
    """Return a value of a type for one of the three sizes; others as they are."""
    if isinstance(types, list):
        return [drawn(case, one, turn) for one in types]
    found = _TYPE.fullmatch(types) if isinstance(types, str) else None
    if found is None:
        return types
    names = {name: values[turn] for name, values in SIZES.items()}
    shape = [int(names.get(n.strip(), 0) or n) for n in found[2].split(",")]
    if found[1] == "int64":
        return torch.randint(0, 2 if "mask" in str(types) else case.limit, shape)
    return torch.rand(shape) if "images" in case.inputs else torch.randn(shape)


def inputs_of(case: Case, turn: int) -> dict[str, Any]:
    """Return the arguments of a call at one of the three sizes."""
    torch.manual_seed(turn)
    found = {name: drawn(case, types, turn) for name, types in case.inputs.items()}
    if "attention_mask" in found:
        found["attention_mask"] = torch.ones_like(found["attention_mask"])
        found["attention_mask"][0, -2:] = 0
    return found


def differs(found: Sequence[Any], expected: Sequence[torch.Tensor]) -> str:
    """Return how results differ from those expected; empty if they do not."""
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for place, (a, b) in enumerate(zip(found, expected, strict=True)):
        a = torch.as_tensor(a)
        if a.shape != b.shape:
            return f"result {place} has shape {list(a.shape)}, expected {list(b.shape)}"
        if not b.numel():
            continue
        a, b = a.double(), b.double()
        scale = max(float(b[b.isfinite()].abs().max()) if b.isfinite().any() else 1.0, 1e-6)
        gap = float((a - b).abs().nan_to_num(posinf=0.0).max()) / scale
        if not gap < 2e-3:
            return f"result {place} differs by {gap:.2g}"
    return ""


def rows_differ(found: Sequence[Any], expected: Sequence[torch.Tensor], pictures: int) -> str:
    """Return how what a detector finds differs from what is expected, in any order of the boxes.

    Scores that lie a rounding apart swap places, and with them boxes that suppress each other or
    fall behind the last place: PyTorch's own, too, where a picture changes by one part in a
    million. So 98 of 100 boxes with their scores, labels and masks have to be the same.
    """
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    parts = len(expected) // pictures
    for first in range(0, len(expected), parts):
        same: Any = True
        for a, b in zip(found[first : first + parts], expected[first : first + parts], strict=True):
            a = torch.as_tensor(a)
            if a.shape[1:] != b.shape[1:]:
                return f"a result has shape {list(a.shape)}, expected {list(b.shape)}"
            a, b = a.double().flatten(1) if a.dim() > 1 else a.double()[:, None], b.double()
            b = b.flatten(1) if b.dim() > 1 else b[:, None]
            scale = max(float(b.abs().max()) if b.numel() else 1.0, 1e-6)
            same = same & (torch.cdist(b, a, p=float("inf")) / scale < 2e-3)
        rows, columns = same.shape
        shared = min(int(same.any(1).sum()), int(same.any(0).sum()))
        if shared < 0.98 * max(rows, columns):
            return f"{shared} of {rows} boxes are among {columns}"
    return ""


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a result in their order."""
    if isinstance(value, torch.Tensor):
        yield value
        return
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = list(value)
    else:
        plain = isinstance(value, type) or callable(value)
        parts = [] if plain else list(getattr(value, "__dict__", {}).values())
    for part in parts:
        yield from leaves(part)


def part_of(result: Any, path: str) -> Any:
    """Return the part of a result that an output is called by."""
    if isinstance(result, Mapping) and path in result:
        return result[path]
    name, _, rest = path.partition(".")
    if name.isdigit():
        found = result[int(name)]
    else:
        found = result[name] if isinstance(result, Mapping) else getattr(result, name)
    return part_of(found, rest) if rest else found


def is_held(model: Any, name: str) -> bool:
    """Whether an output is the new value of an attribute of the model."""
    try:
        return name.endswith(".new") and part_of(model, name.removesuffix(".new")) is not None
    except (AttributeError, IndexError, KeyError, TypeError):
        return False


def problem(error: BaseException) -> str:
    """Return an error in one line."""
    found = getattr(error, "problems", None)
    if found:
        return str(found[0])
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({Path(last[0].filename).name}:{last[0].lineno})" if last else ""
    return f"{type(error).__name__}: {str(error)[:300]}{where}"


def agreement(
    case: Case,
    model: Any,
    run: Callable[[dict[str, Any]], list[Any]],
    names: Sequence[str] = (),
) -> str:
    """Return how something differs from the model at three sizes; empty if it does not.

    Results are compared by the paths that are their names, where they have names; attributes of
    the model that a call may set are not compared.
    """
    for turn in range(3):
        inputs = inputs_of(case, turn)
        result = model(**inputs)
        expected = [*leaves(result)]
        held = [is_held(model, name) for name in names]
        if names and names[0].removesuffix(".new") != "output":
            parts = [
                part_of(result, name.removesuffix(".new"))
                for name, own in zip(names, held, strict=True)
                if not own
            ]
            missing = len(expected) - sum(isinstance(part, torch.Tensor) for part in parts)
            if missing:
                return f"{missing} tensors of the result are no outputs"
            expected = [torch.as_tensor(part) for part in parts]
        try:
            found = run(inputs)
            if any(held):
                found = [one for one, own in zip(found, held, strict=True) if not own]
        except Exception as error:
            return f"run at size {turn}: {problem(error)}"
        if case.name in DATA_DEPENDENT:
            difference = rows_differ(found, expected, len(result))
        else:
            difference = differs(found, expected)
        if difference:
            return f"{difference} at size {turn}"
    return ""


def typed(case: Case, model: Any) -> str:
    """Return what keeps the check from being clean; empty if nothing does."""
    report = hagane.check(model, **dict(case.inputs))
    for problems, kind in ((report.errors, "error"), (report.unknown, "unknown")):
        for one in problems:
            place = one.place
            where = f"{place.file}:{place.line}: " if place else ""
            return f"{where}{kind}: {one.message}"
    if not report.checked:
        one = report.notices[-1]
        where = f"{one.place.file}:{one.place.line}: " if one.place else ""
        return f"{where}not checked: {one.message}"
    return mistyped(case, model, report)


def mistyped(case: Case, model: Any, report: hagane.Report) -> str:
    """Return how the types of a result differ from what running gives at three sizes."""
    if not report.tensors:
        return f"no tensors in the result: {report.returned}"
    open_sizes = 0
    for turn in range(3):
        inputs = inputs_of(case, turn)
        sizes = {name: values[turn] for name, values in SIZES.items()}
        result = model(**inputs)
        count = sum(1 for _ in leaves(result))
        if count != len(report.tensors):
            return f"{len(report.tensors)} tensors in the result, expected {count}"
        for path, tensor in report.tensors.items():
            found = part_of(result, path) if path else result
            dtype = str(found.dtype).removeprefix("torch.")
            if tensor.shape is None or tensor.rank != found.dim():
                return f"'{path}' has {tensor.shape}, expected {list(found.shape)}"
            if dtype_name(tensor.dtype) != dtype:
                return f"'{path}' is {dtype_name(tensor.dtype)}, expected {dtype}"
            shape = [evaluate(dim, sizes) for dim in tensor.shape]
            told = [size if isinstance(size, int) else None for size in shape]
            open_sizes += told.count(None)
            if any(a not in (None, b) for a, b in zip(told, found.shape, strict=True)):
                return f"'{path}' has {told} at size {turn}, expected {list(found.shape)}"
    if open_sizes and not DATA_DEPENDENT & {case.name}:
        return f"{open_sizes // 3} sizes of the result are open"
    return ""


def captured(case: Case, model: Any) -> tuple[str, str]:
    """Return what keeps a graph from being made, and how it differs."""
    import onnxruntime

    try:
        graph = hagane.capture(model, **dict(case.inputs))
    except Exception as error:
        return problem(error), ""
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(to_proto(graph).SerializeToString(), options)
    except Exception as error:
        return "", problem(error)
    names = [value.name for value in session.get_inputs()]

    def run(inputs: dict[str, Any]) -> list[Any]:
        given: dict[str, Any] = {}
        for name, value in inputs.items():
            if isinstance(value, list):
                given.update({f"{name}.{i}": np.asarray(v) for i, v in enumerate(value)})
            elif isinstance(value, torch.Tensor):
                given[name] = np.asarray(value)
        for name in names:
            if name not in given:  # an attribute that a call may set
                given[name] = np.asarray(part_of(model, name))
        return list(session.run(None, {n: v for n, v in given.items() if n in names}))

    return "", agreement(case, model, run, [value.name for value in session.get_outputs()])


def exported(case: Case, model: Any) -> str:
    """Return what became of torch.export: empty, or why not."""
    inputs = inputs_of(case, 0)

    def shapes(types: Any) -> Any:
        if isinstance(types, list):
            return [shapes(one) for one in types]
        found = _TYPE.fullmatch(types) if isinstance(types, str) else None
        if found is None:
            return None
        axes = {}
        for place, name in enumerate(n.strip() for n in found[2].split(",")):
            if name in SIZES:
                axes[place] = torch.export.Dim.AUTO  # the sizes that follow tell which are open
        return axes

    try:
        program = torch.export.export(
            model, (), inputs, strict=False,
            dynamic_shapes={n: shapes(t) for n, t in case.inputs.items()},
        )  # fmt: skip
        module = program.module()
        return agreement(case, model, lambda given: [*leaves(module(**given))])
    except Exception as error:
        return problem(error)


def measured(case: Case, ways: set[str], connection: Any) -> None:
    """Send what became of a model, a way at a time."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            model = case.make().eval()
            if case.asks is not None:
                case = replace(case, inputs=case.asks(model))
            [*leaves(model(**inputs_of(case, 0)))]
    except Exception as error:
        connection.send(("broken", problem(error)))
        return
    with torch.no_grad():
        if "check" in ways:
            start = time.perf_counter()
            try:
                connection.send(("check", typed(case, model)))
            except Exception as error:
                connection.send(("check", problem(error)))
            connection.send(("check seconds", time.perf_counter() - start))
        if "capture" in ways:
            start = time.perf_counter()
            one, other = captured(case, model)
            connection.send(("capture", one))
            connection.send(("agrees", one or other))
            connection.send(("capture seconds", time.perf_counter() - start))
        if "export" in ways:
            connection.send(("export", exported(case, model)))
    connection.send(("done", ""))


def run_case(case: Case, ways: set[str], limit: float) -> dict[str, Any]:
    """Return what became of a model, in a process of its own."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(False)
    process = context.Process(target=measured, args=(case, ways, theirs))
    process.start()
    theirs.close()
    row: dict[str, Any] = {"library": case.library, "name": case.name}
    deadline = time.monotonic() + limit
    while mine.poll(max(0.0, deadline - time.monotonic())):
        try:
            name, value = mine.recv()
        except EOFError:
            row.setdefault("ended", "the process died")
            break
        if name == "done":
            row["ended"] = ""
            break
        row[name] = value
        if name == "broken":
            row["ended"] = value
            break
    row.setdefault("ended", f"more than {limit:.0f} s")
    process.kill()
    process.join()
    for way in ways:
        row.setdefault(way, row["ended"])
    if "capture" in ways:
        row.setdefault("agrees", row["capture"])
    return row


def shown(row: Mapping[str, Any], ways: set[str]) -> str:
    """Return a row of the table."""
    if "broken" in row:
        return f"{row['library'][:12]:12} {row['name'][:28]:28} not run: {row['broken'][:200]}"
    columns = [w for w in ("check", "capture", "agrees", "export") if w in row]
    marks = " ".join(f"{'yes' if not row[c] else '-':8}" for c in columns)
    first = next((f"{c}: {row[c]}" for c in columns if row[c]), "")
    first = re.sub(r"/\S*site-packages/", "", first)
    return f"{row['library'][:12]:12} {row['name'][:28]:28} {marks} {first[:230]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--ways", default="check,capture")
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--wide", action="append", default=[], metavar="LIBRARY:A:B")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = {*options.ways.split(",")} | ({"export"} if options.export else set())
    libraries = {*filter(None, options.library.split(","))}
    only = {*filter(None, options.only.split(","))}
    chosen = [
        case
        for case in cases()
        if (not libraries or case.library in libraries) and (not only or case.name in only)
    ]
    import_torchvision()
    if options.wide:
        made = [one for text in options.wide for one in wide(text)]
        chosen = [Case(library, name, make, {}, asks=asks) for library, name, make, asks in made]
    for library in sorted({case.library for case in chosen}):
        importlib.import_module(library)
    rows = []
    print(f"{'':41} {' '.join(f'{w:8}' for w in ('check', 'capture', 'agrees', 'export'))}")
    for case in chosen:
        row = run_case(case, ways, options.limit)
        rows.append(row)
        print(shown(row, ways), flush=True)
        if options.output:
            options.output.write_text(json.dumps(rows, indent=1))
    if options.wide:
        print(f"{sum('broken' in row for row in rows)} of {len(rows)} cannot be made or called so")
        rows = [row for row in rows if "broken" not in row]
    columns = [w for w in ("check", "capture", "agrees", "export") if rows and w in rows[0]]
    for library in [*sorted({row["library"] for row in rows}), ""]:
        own = [row for row in rows if library in ("", row["library"])]
        counts = ", ".join(f"{c} {sum(not row[c] for row in own)}" for c in columns)
        print(f"{library or 'all'}: {counts} of {len(own)}")
    for column in columns:
        obstacles = collections.Counter(row[column] for row in rows if row[column])
        for text, count in obstacles.most_common():
            print(f"{column:8} {count:3}  {re.sub(r'/[^ ]*site-packages/', '', text)[:260]}")


if __name__ == "__main__":
    main()
