"""Capture elichika's own test programs, and compare graph, eager hagane and ONNX Runtime.

``FOLDER`` holds a source tree of pfnet-research/chainer-compiler, whose programs are imported
unchanged, with hagane under Chainer's name::

    python tests/outside/elichika.py FOLDER [--values VALUES] [--json FILE] [NAME ...]

``NAME`` is a part of the path of a program, such as ``syntax/For``. Each program calls
``generate_testcase(model, arguments)`` for its cases; here a case is captured, with integers and
the parts of lists as inputs (integers are known where that alone is a graph), and run in both
engines on the arguments of the case. Prints a line for each case that fails, and counts; status 1
if one fails.

Results are compared with hagane's own links, or, with ``--values``, with those of Chainer itself:
the Python of an environment with Chainer 7.8.1 (``chainer_oracle.py`` says how it is made) writes
them, with arguments and weights, to a folder before::

    CHAINERS_PYTHON tests/outside/elichika.py FOLDER --write VALUES [NAME ...]
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import json
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).resolve().parents[2] / "src"
PLACE = "testcases/elichika_tests"
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
SECONDS = 600


def programs(folder: Path, names: list[str]) -> list[str]:
    """Return the programs that the project itself runs, by path without ending."""
    text = (folder / "scripts" / "elichika_tests.py").read_text()
    found = ["/".join(pair) for pair in re.findall(r"Generator\('([^']+)', '([^']+)'\)", text)]
    return [one for one in found if not names or any(name in one for name in names)]


def substitute(folder: Path, case: Any) -> None:
    """Put a function in the place of the project's test tools."""
    np.int, np.float = int, float  # type: ignore[attr-defined]  # names of the NumPy of that time
    sys.path.insert(0, str(folder))
    tools = "chainer_compiler.elichika.testtools"
    for name in ("chainer_compiler", "chainer_compiler.elichika", tools):
        module = types.ModuleType(name)
        module.__path__ = [str(folder / name.replace(".", "/"))]
        sys.modules[name] = module
    flags = types.ModuleType("chainer_compiler.elichika.parser.flags")
    for name in ("eval_as_written_target", "ignore_branch", "for_unroll"):
        setattr(flags, name, flag)
    parser = types.ModuleType("chainer_compiler.elichika.parser")
    parser.flags = flags  # type: ignore[attr-defined]
    sys.modules |= {parser.__name__: parser, flags.__name__: flags}
    sys.modules[tools].generate_testcase = case  # type: ignore[attr-defined]
    sys.modules["chainer_compiler.elichika"].testtools = sys.modules[tools]  # type: ignore[attr-defined]


class Flag:
    """A block with a hint for elichika, which hagane does without."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def flag(unroll: bool = True) -> Flag:
    """Return a block with a hint."""
    del unroll
    return Flag()


RESULTS: list[dict[str, Any]] = []


def write(into: Path, model: Any, xs: list[Any], subname: str = "", backprop: bool = False,
          **_: Any) -> None:  # fmt: skip
    """Run one case on Chainer, and write arguments, weights and results to a file."""
    import chainer

    result = {"case": subname or "", "stage": "", "message": ""}
    RESULTS.append(result)
    chainer.config.train = backprop
    values: dict[str, np.ndarray] = {}
    try:
        if isinstance(model, type | types.FunctionType):
            model = model()
        for place, x in enumerate(xs):
            hold(x, f"argument.{place}", values)
        results = [*flat(model(*copy.deepcopy(xs)))]
        values |= {f"weight{path}": one.array for path, one in model.namedparams()}
        values |= {f"result.{i:03}": np.asarray(one) for i, one in enumerate(results)}
    except Exception as error:
        result |= {"stage": "Chainer", "message": f"{type(error).__name__}: {error}"}
        return
    into.mkdir(parents=True, exist_ok=True)
    np.savez(into / f"{len(RESULTS)}.npz", **values)


def case(values: Path | None, model: Any, xs: list[Any], subname: str = "",
         backprop: bool = False, **_: Any) -> None:  # fmt: skip
    """Run one case, and note how it ended."""
    import chainer

    result = {"case": subname or "", "stage": "", "message": ""}
    RESULTS.append(result)
    chainer.config.train = backprop
    stage = "eager"
    written = values / f"{len(RESULTS)}.npz" if values else None
    if written is not None and not written.exists():
        result |= {"stage": "Chainer", "message": "Chainer itself raised an error"}
        return
    try:
        if isinstance(model, type | types.FunctionType):
            model = model()
        first = copy.deepcopy(model)
        known = dict(np.load(written)) if written else {}
        if known:
            xs = [given(x, f"argument.{place}", known) for place, x in enumerate(xs)]
            expected = [known[name] for name in sorted(known) if name.startswith("result.")]
            for path, parameter in first.namedparams():
                parameter.array = known[f"weight{path}"]
        else:
            expected = [*flat(model(*copy.deepcopy(xs)))]
        for (_, made), (_, lacking) in zip(
            sorted(model.namedparams()), sorted(first.namedparams()), strict=True
        ):
            if lacking.array is None:  # the first call finds its sizes
                lacking.array = made.array
        stage = "capture"
        graph, feeds = captured(first, xs)
        if expected or len(graph.graph.outputs):
            stage = "hagane"
            agree(expected, in_hagane(graph, feeds))
            stage = "onnxruntime"
            agree(expected, in_onnxruntime(graph, feeds))
        stage = ""
    except Exception as error:
        result["message"] = f"{type(error).__name__}: {error}"
    result["stage"] = stage


def captured(model: Any, xs: list[Any]) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the graph of a call, with the values of its inputs."""
    import hagane

    graph = None
    kinds = ["int" if type(x) is int else x for x in xs]
    known = [int(x) if isinstance(x, np.integer) else x for x in xs]
    empty: dict[str, None] = {}  # attributes that are None: each case is the call of a new model
    for given in (kinds, known):
        while graph is None:
            try:
                graph = hagane.capture(model, *given, **empty)
            except hagane.errors.CaptureError as error:
                more = re.findall(r"is None before .* say {'([^']+)': None}", str(error))
                if more and not empty.keys() & {*more}:
                    empty |= dict.fromkeys(more)
                    continue
                if given is known or not any(isinstance(x, int | np.integer) for x in xs):
                    raise
                RESULTS[-1]["fixed"] = str(error)
                break
    parameters = [*inspect.signature(model.forward).parameters]
    held: dict[str, np.ndarray] = {}
    for name, x in zip(parameters, xs, strict=False):
        hold(x, name, held)
    for value in graph.graph.inputs:
        if value.name not in held:  # an attribute that the call changes
            found = functools.reduce(getattr, value.name.split("."), model)
            held[value.name] = np.asarray(getattr(found, "array", found))
    return graph, {value.name: held[value.name] for value in graph.graph.inputs}


def hold(value: Any, path: str, held: dict[str, np.ndarray]) -> None:
    """Note the arrays of an argument by their paths."""
    if isinstance(value, list | tuple):
        for i, item in enumerate(value):
            hold(item, f"{path}.{i}", held)
    elif value is not None:
        held[path] = np.asarray(getattr(value, "array", value))


def given(value: Any, path: str, known: dict[str, np.ndarray]) -> Any:
    """Return an argument with the arrays that Chainer had in it."""
    if isinstance(value, list | tuple):
        return type(value)(given(item, f"{path}.{i}", known) for i, item in enumerate(value))
    if path not in known:
        return value
    if hasattr(value, "array"):
        return type(value)(known[path])
    return known[path] if isinstance(value, np.ndarray) else type(value)(known[path])


def in_hagane(graph: Any, feeds: dict[str, np.ndarray]) -> list[Any]:
    """Return the outputs of hagane's engine."""
    import hagane

    return listed(graph, hagane.InferenceSession(graph).run(None, feeds))


def in_onnxruntime(graph: Any, feeds: dict[str, np.ndarray]) -> list[Any]:
    """Return the outputs of ONNX Runtime."""
    import onnx
    import onnxruntime

    from hagane.graph import to_proto

    proto = to_proto(graph)
    onnx.checker.check_model(proto)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return listed(
        graph, onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds)
    )


def listed(graph: Any, found: list[Any]) -> list[Any]:
    """Return outputs with the arrays of lists, which leave joined beside their sizes."""
    values = {value.name: x for value, x in zip(graph.graph.outputs, found, strict=True)}
    results: list[Any] = []
    for name, x in values.items():
        if f"{name}.sizes" in values:
            results += np.split(x, np.cumsum(values[f"{name}.sizes"])[:-1])
        elif not name.endswith(".sizes") or name.removesuffix(".sizes") not in values:
            results.append(x)
    return results


def flat(value: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of a result in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)
    elif value is not None and not isinstance(value, str):
        yield np.asarray(getattr(value, "array", value))


def agree(expected: list[Any], found: list[Any]) -> None:
    """Compare two results; new state comes after what is returned, stacked lists in one array."""
    if len(expected) > len(found) and all(np.ndim(b) for b in found):  # each of equal parts
        parts = iter(expected)
        expected = [np.stack([next(parts) for _ in b]) for b in found] + [*parts]
    if len(expected) > len(found):
        raise AssertionError(f"{len(expected)} results, the graph has {len(found)}")
    for place, (a, b) in enumerate(zip(expected, found, strict=False)):
        if a.shape != np.shape(b):
            raise AssertionError(f"result {place} has shape {a.shape}, the graph {np.shape(b)}")
        if not np.allclose(a, b, **TOLERANCE, equal_nan=True):
            raise AssertionError(f"result {place} differs by up to {np.max(np.abs(a - b))}")


def one(folder: Path, name: str, values: Path | None, *, writing: bool) -> None:
    """Run one program, and print its cases as JSON."""
    warnings.simplefilter("ignore")
    if not writing:
        from hagane.nn.aliasing import install

        install()
    into = values / name.replace("/", ".") if values else None
    substitute(folder, functools.partial(write if writing else case, into))
    np.random.seed(43)
    error = ""
    try:
        importlib.import_module(f"{PLACE}/{name}".replace("/", ".")).main()
    except BaseException as failure:
        error = f"{type(failure).__name__}: {failure}"
    print("\n" + json.dumps({"cases": RESULTS, "error": error}))


def main(arguments: list[str]) -> int:
    """Run programs, each in a process of its own; return the exit status."""
    options: dict[str, Path] = {}
    for option in ("--json", "--values", "--write"):
        if option in arguments:
            place = arguments.index(option)
            options[option] = Path(arguments[place + 1])
            del arguments[place : place + 2]
    into = options.get("--json")
    more = [str(word) for option in ("--values", "--write") if option in options
            for word in (option, options[option])]  # fmt: skip
    if not arguments or not (Path(arguments[0]) / PLACE).is_dir():
        print(
            f"usage: {sys.argv[0]} FOLDER [--values VALUES | --write VALUES] [--json FILE] "
            "[NAME ...]",
            file=sys.stderr,
        )
        return 2
    folder, *names = arguments
    results: dict[str, Any] = {}
    for name in programs(Path(folder), names):
        command = [sys.executable, __file__, "--one", folder, name, *more]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            lines = run.stdout.strip().splitlines()
            found = json.loads(lines[-1]) if lines else {"cases": [], "error": run.stderr[-500:]}
        except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
            found = {"cases": [], "error": f"{type(error).__name__}: {error}"}
        results[name] = found
        for one_case in found["cases"]:
            if "fixed" in one_case:
                shown = one_case["fixed"].replace("\n", " ")[:300]
                print(f"{name} {one_case['case']}: with integers fixed only: {shown}", flush=True)
            if one_case["stage"]:
                shown = one_case["message"].replace("\n", " ")[:300]
                print(f"{name} {one_case['case']}: {one_case['stage']}: {shown}", flush=True)
        if found["error"]:
            print(f"{name}: ended early: {found['error'][:300]}", flush=True)
    if into is not None:
        into.write_text(json.dumps(results, indent=1))
    cases = [c for found in results.values() for c in found["cases"]]
    good = sum(not c["stage"] for c in cases)
    fixed = sum("fixed" in c for c in cases)
    ended = sum(bool(found["error"]) for found in results.values())
    print(
        f"{len(results)} programs, {len(cases)} cases: {good} agree, {fixed} of all "
        f"with integers fixed only; {ended} programs ended early"
    )
    return 0 if good == len(cases) and not ended else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        sys.path.insert(0, str(SOURCE))
        one(
            Path(sys.argv[2]),
            sys.argv[3],
            Path(sys.argv[5]) if sys.argv[5:] else None,
            writing=sys.argv[4:5] == ["--write"],
        )
        raise SystemExit(0)
    raise SystemExit(main(sys.argv[1:]))
