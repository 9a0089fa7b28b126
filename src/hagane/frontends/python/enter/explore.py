"""The concolic step: other branches reached with other sizes, errors replayed for real.

The program is interpreted with the sizes of an example; every decision that depends on sizes is
recorded. The negation of each, under the decisions before it, gives sizes of the next example.
"""

from __future__ import annotations

import importlib.util
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from hagane.errors import HaganeError, InvalidArgument
from hagane.frontends.python.enter.check import Request, interpret
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import Note, Problem, Report
from hagane.frontends.python.values.type_text import (
    DTYPES,
    Axis,
    ContainerText,
    PlainText,
    SizeText,
    TensorText,
    TypeText,
    parse_type,
)
from hagane.graph.types import dtype_name
from hagane.symbolic import Dim, evaluate, symbol, symbols_of
from hagane.symbolic.logic import both, negate
from hagane.symbolic.questions import Knowledge

_MAX_EXAMPLES = 64


def explore(
    request: Request, tables: Tables, *, seconds: float = 60.0, replay: bool = True
) -> Report:
    """Check a program, then look for sizes that reach its other branches.

    Args:
        request: The object to check; plain numbers in its inputs are sizes of the first example.
        tables: The meanings of names of libraries.
        seconds: How long to look for further examples.
        replay: Whether to run the real program with the inputs of each error. This imports the
            file.

    Returns:
        The report of the check, with the errors of all examples. Each error carries the concrete
        inputs that trigger it, and whether the framework fails with them.
    """
    first = interpret(request, Knowledge(sample=dict(request.sizes)), tables)
    report = first.collector.report
    if not report.checked:
        return report
    inputs, sample = _opened(request.inputs)
    names = {name for text in inputs.values() for name in _names(text)}
    start = first.knowledge.example(frozenset(names - sample.keys() - request.sizes.keys()))
    sample = {**{n: v for n, v in start.items() if n in names}, **sample, **request.sizes}
    errors: dict[tuple[int, str, str], Problem] = {}
    for problem in report.errors:
        _add(errors, problem, inputs, {**sample, **problem.counterexample})
    shown = replace(request, inputs={n: _show(t) for n, t in inputs.items()})
    _search(shown, tables, inputs, sample, report, errors, time.monotonic() + seconds)
    report.errors = sorted(errors.values(), key=lambda p: (p.place.file, p.place.line))
    if replay and report.errors:
        _replay_all(request, inputs, report)
    return report


def _search(
    request: Request,
    tables: Tables,
    inputs: Mapping[str, TypeText],
    sample: dict[str, int],
    report: Report,
    errors: dict[tuple[int, str, str], Problem],
    deadline: float,
) -> None:
    queue, seen, decided = [sample], {_signature(sample)}, set()
    examples = 0
    while queue and examples < _MAX_EXAMPLES and time.monotonic() < deadline:
        current = queue.pop(0)
        examples += 1
        knowledge = Knowledge(sample=dict(current), concolic=True)
        found = interpret(replace(request, sizes=current), knowledge, tables)
        for problem in found.collector.report.errors:
            _add(errors, problem, inputs, current)
        for text in found.collector.report.conditions:
            if text not in report.conditions:
                report.conditions.append(text)
        for _, path, decision in found.collector.decisions:
            goal = both(path.term, negate(decision))
            if goal in decided:
                continue
            decided.add(goal)
            other = knowledge.find(goal)
            if other is not None:
                following = {**current, **{n: v for n, v in other.items() if n in current}}
                if _signature(following) not in seen:
                    seen.add(_signature(following))
                    queue.append(following)
    report.notices.append(
        Note(None, f"explored {examples} example{'s' if examples != 1 else ''} of input sizes")
    )


def _signature(sample: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(sample.items()))


def _add(
    errors: dict[tuple[int, str, str], Problem],
    problem: Problem,
    inputs: Mapping[str, TypeText],
    sizes: Mapping[str, int],
) -> None:
    key = (problem.place.line, problem.code, problem.place.file)
    if key not in errors:
        concrete = {name: _show(text, sizes) for name, text in inputs.items()}
        errors[key] = replace(problem, inputs=concrete)


def _opened(texts: Mapping[str, str]) -> tuple[dict[str, TypeText], dict[str, int]]:
    """Return the inputs with a name for every size, and the sizes of the first example."""
    sample: dict[str, int] = {}
    return {name: _open(parse_type(text), name, sample) for name, text in texts.items()}, sample


def _open(text: TypeText, name: str, sample: dict[str, int]) -> TypeText:
    if isinstance(text, TensorText):
        axes = []
        for place, axis in enumerate(text.axes):
            if isinstance(axis.size, int):
                sample[f"{name}_{place}"] = axis.size
                axes.append(Axis(symbol(f"{name}_{place}")))
            else:
                if axis.example is not None:
                    sample[str(axis.size)] = axis.example
                axes.append(axis)
        return TensorText(text.dtypes, tuple(axes))
    if isinstance(text, ContainerText):
        items = tuple(_open(item, f"{name}_{i}", sample) for i, item in enumerate(text.items))
        return ContainerText(text.kind, items, text.times)
    if isinstance(text, PlainText) and type(text.value) is int:
        sample[name] = text.value
        return SizeText(symbol(name))
    return text


def _names(text: TypeText) -> set[str]:
    if isinstance(text, TensorText):
        return {n for axis in text.axes if axis.size is not None for n in symbols_of(axis.size)}
    if isinstance(text, ContainerText):
        found = {n for item in text.items for n in _names(item)}
        return found | (symbols_of(text.times) if text.times is not None else set())
    return set(symbols_of(text.size)) if isinstance(text, SizeText) else set()


def _show(text: TypeText, sizes: Mapping[str, int] | None = None) -> str:
    def size(dim: Dim | None) -> str:
        if dim is None:
            return "1" if sizes is not None else "None"
        return str(dim if sizes is None else evaluate(dim, dict(sizes)))

    if isinstance(text, TensorText):
        dtype = dtype_name(text.dtypes[0]) if text.dtypes else "float32"
        return f"{dtype}[{', '.join(size(axis.size) for axis in text.axes)}]"
    if isinstance(text, ContainerText):
        items = [_show(item, sizes) for item in text.items]
        if text.times is not None:
            items.append(size(text.times))
        return f"{text.kind}[{', '.join(items)}]"
    if isinstance(text, SizeText):
        return size(text.size)
    return repr(text.value) if text.kind == "value" else text.kind


# Replaying.


def _replay_all(request: Request, inputs: Mapping[str, TypeText], report: Report) -> None:
    try:
        module = import_file(request.file)
    except BaseException as error:
        report.notices.append(
            Note(None, f"errors were not replayed: importing '{request.file}' failed: {error}")
        )
        return
    report.errors = [
        replace(problem, replayed=_fails(request, module, problem.inputs))
        for problem in report.errors
    ]


def import_file(path: Path) -> ModuleType:
    """Import a source file under a name of its own; its folder is searched for other modules."""
    folder = str(path.resolve().parent)
    spec = importlib.util.spec_from_file_location(f"_hagane_checked_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def import_program(path: Path) -> ModuleType:
    """Import a file of the user's; what it raises is told by its line of the file.

    Raises:
        HaganeError: hagane has refused something there.
        InvalidArgument: It is no Python, or raises something else.
    """
    try:
        return import_file(path)
    except HaganeError:
        raise
    except Exception as error:
        place = place_of(error, path)
        raise InvalidArgument(f"{place}: {type(error).__name__}: {error}") from error


def place_of(error: Exception, path: Path) -> str:
    """Return the innermost line of a file that an error passed through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == path.resolve()
    ]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _fails(request: Request, module: ModuleType, inputs: Mapping[str, str]) -> bool | None:
    """Say whether the real program fails with inputs of these types; None if it cannot be run."""
    name, _, method = request.target.partition(".")
    try:
        owner = eval(request.make, vars(module)) if request.make else getattr(module, name)
        if isinstance(owner, type):
            owner = owner()
    except Exception:
        return True
    function = getattr(owner, method) if method else owner
    try:
        arguments = {name: _real(parse_type(text), module) for name, text in inputs.items()}
    except Exception:
        return None
    try:
        function(**arguments)
    except Exception:
        return True
    return False


def _real(text: TypeText, module: ModuleType) -> Any:
    """Return a real value of a type: zeros, in the framework that the module uses."""
    if isinstance(text, TensorText):
        shape = tuple(int(str(axis.size)) for axis in text.axes)
        name = next(n for n, d in DTYPES.items() if text.dtypes and d == text.dtypes[0])
        torch = sys.modules.get("torch")
        if torch is not None and any(found is torch for found in vars(module).values()):
            return torch.zeros(shape, dtype=getattr(torch, name))
        if torch is not None and _uses(module, "torch"):
            return torch.zeros(shape, dtype=getattr(torch, name))
        import numpy as np

        return np.zeros(shape, dtype=name)
    if isinstance(text, ContainerText):
        items = [_real(item, module) for item in text.items]
        if isinstance(text.times, int):
            items = items * text.times
        return tuple(items) if text.kind == "tuple" else items
    if isinstance(text, PlainText) and text.kind == "value":
        return text.value
    return {"int": 1, "float": 1.0, "bool": True, "str": ""}.get(getattr(text, "kind", ""), 1)


def _uses(module: ModuleType, root: str) -> bool:
    return any(
        str(getattr(found, "__module__", "") or getattr(found, "__name__", "")).startswith(root)
        for found in vars(module).values()
    )


__all__ = ["explore", "import_file", "import_program", "place_of"]
