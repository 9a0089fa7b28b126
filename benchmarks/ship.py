"""Builds beside the session, and beside ONNX Runtime's C library.

    python benchmarks/ship.py agree [NAME …]      results to the bit, over ranges of sizes
    python benchmarks/ship.py measure [NAME …]    time, start, memory and size

``measure`` starts one program in C for each figure: once with a build, once with the library of
ONNX Runtime's package and the ONNX file. Rounds alternate, medians count, and ratios are hagane
over the other, so below 1 hagane needs less. *start* is from the first call to the first result,
*peak* the memory of the whole program, *size* what lies on disk without weights. *session* is a run
of the build over a run of ``hagane.InferenceSession`` in Python.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from trained import TRAINED, made_input

import hagane
from hagane.errors import HaganeError
from hagane.machine import find_compiler, usable_cores
from hagane.ship import BuildOptions, build_model
from models import make

Feed = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Case:
    """A model as it is built.

    Attributes:
        path: Its file.
        shapes: Ranges of sizes, as ``--shape`` has them.
        feeds: Inputs within them; the first is measured.
        constants: Inputs that are always the same, as ``--constant`` has them.
    """

    path: Path
    shapes: tuple[str, ...]
    feeds: tuple[Feed, ...]
    constants: tuple[str, ...] = ()


def _draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _ids(batch: int, length: int, words: int = 30522) -> np.ndarray:
    return np.random.default_rng(length).integers(0, words, (batch, length))


def _pictures(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)
    return Case(path, (), tuple({"x": _draw(1, 3, 224, 224, seed=s)} for s in range(2)))


def _trained(folder: Path, name: str) -> Case:
    path = folder / f"{name.replace(' ', '_').replace(',', '')}.onnx"
    if not path.exists():
        onnx.save(TRAINED[name](), path)
    feed = made_input(name)
    assert feed is not None
    return Case(path, (), (feed,))


def _bert(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)
    return Case(path, (), ({"x": _ids(1, 128)},))


def _sentences(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)

    def feed(batch: int, length: int) -> Feed:
        ids = _ids(batch, length)
        mask = np.ones_like(ids)
        mask[-1, length // 2 + 1 :] = 0
        return {"input_ids": ids, "attention_mask": mask}

    sizes = ((1, 128), (1, 1), (3, 17), (4, 64), (2, 5))
    shapes = ("input_ids=1..4,1..128", "attention_mask=1..4,1..128")
    return Case(path, shapes, tuple(feed(*pair) for pair in sizes))


def _step(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)

    def feed(length: int) -> Feed:
        past = {f"past{i}": _draw(1, 12, length, 64, seed=i) for i in range(24)}
        return {"x": _ids(1, 1, 50257)} | past

    shapes = tuple(f"past{i}=1,12,0..255,64" for i in range(24))
    return Case(path, shapes, tuple(map(feed, (127, 0, 1, 33, 255))))


def _words(folder: Path, name: str) -> Case:
    path = folder / "microformer.onnx"
    if not path.exists():
        import sys

        sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "lexgen"))
        from fetch import fetch
        from gpt2_onnx import gpt2_model

        found = next(fetch("microformer-mgm==0.5.8").rglob("pytorch_model.bin"))
        onnx.save(gpt2_model(found.parent), path)
    vocabulary = 100
    lengths = (40, 1, 7, 64)
    return Case(path, ("ids=1,1..64",), tuple({"ids": _ids(1, n, vocabulary)} for n in lengths))


def _line(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)
    widths = (320, 48, 101, 640, 33)
    feeds = [{"x": _draw(1, 3, 48, width)} for width in widths]
    return Case(path, ("x=1..2,3,48,32..640",), (*feeds, {"x": _draw(2, 3, 48, 75)}))


def _page(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)
    sizes = ((320, 480), (32, 32), (96, 160))
    return Case(
        path,
        ("x=1,3,32..960,32..960",),
        tuple({"x": _draw(1, 3, height, width)} for height, width in sizes),
    )


def _sound(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)
    key = "serving_default_input_2:0"
    feeds = tuple({key: 0.1 * _draw(batch, 43844, 1)} for batch in (1, 3))
    return Case(path, (f"{key}=1..4,43844,1",), feeds)


def _files(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)
    random = np.random.default_rng(0)
    (item,) = onnx.load(path).graph.input
    dtype = helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
    feeds = [{"bytes": random.integers(0, 256, (n, 2048)).astype(dtype)} for n in (1, 3)]
    return Case(path, ("bytes=1..4,2048",), tuple(feeds))


def _voice(folder: Path, name: str) -> Case:
    path, _ = make(name, folder)

    def feed(batch: int) -> Feed:
        return {
            "input": 0.1 * _draw(batch, 576),
            "state": 0.1 * _draw(2, batch, 128, seed=1),
        }

    return Case(path, ("input=1..4,576", "state=2,1..4,128"), tuple(map(feed, (1, 3))))


def _voice_slow(folder: Path, name: str) -> Case:
    """The file as published: the sampling rate, an input, decides between branches."""
    from fetch import fetch

    path = fetch("silero-vad==6.2.3") / "silero_vad" / "data" / "silero_vad.onnx"
    feed = {"input": 0.1 * _draw(1, 288), "state": 0.1 * _draw(2, 1, 128, seed=1)}
    return Case(path, ("input=1,288", "state=2,1,128"), (feed,), ("sr=8000",))


class _Tagger(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.LSTM(40, 96, 2, bidirectional=True)
        self.last = torch.nn.Linear(192, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.layers(x)[0])
        return found


def _tagger(folder: Path, name: str) -> Case:
    path = folder / "lstm.onnx"
    if not path.exists():
        torch.manual_seed(0)
        with torch.no_grad():
            torch.onnx.export(
                _Tagger().eval(), (torch.randn(20, 2, 40),), str(path), dynamo=False,
                opset_version=17, input_names=["x"], dynamic_axes={"x": {0: "steps", 1: "batch"}},
            )  # fmt: skip
    sizes = ((50, 1), (1, 1), (33, 4), (100, 3))
    return Case(path, ("x=1..100,1..4,40",), tuple({"x": _draw(*pair, 40)} for pair in sizes))


def _small(folder: Path, name: str) -> Case:
    path = folder / "small.onnx"
    if not path.exists():
        weights = {"w": _draw(64, 10), "b": _draw(10, seed=1)}
        nodes = [
            helper.make_node("Gemm", ["x", "w", "b"], ["a"]),
            helper.make_node("Softmax", ["a"], ["y"]),
        ]
        graph = helper.make_graph(
            nodes,
            "small",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
            [numpy_helper.from_array(value, key) for key, value in weights.items()],
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return Case(path, ("x=0..8,64",), tuple({"x": _draw(n, 64)} for n in (1, 0, 8, 3)))


CASES: Mapping[str, Callable[[Path, str], Case]] = {
    "Small": _small,
    "LSTM": _tagger,
    "Magika": _files,
    "Silero VAD": _voice,
    "Silero VAD, 8 kHz": _voice_slow,
    "GPT-2, small": _words,
    "MiniLM": _sentences,
    "Basic Pitch": _sound,
    "PP-OCR rec": _line,
    "PP-OCR det": _page,
    "MobileNetV2": _pictures,
    "MobileNetV2, trained": _trained,
    "EfficientNet-Lite0, trained": _trained,
    "ResNet-50": _pictures,
    "BERT-base": _bert,
    "GPT-2 step": _step,
}
# Of these the shipping page speaks.
MEASURED = ("ResNet-50", "MobileNetV2", "BERT-base", "PP-OCR rec", "GPT-2 step", "LSTM", "Small")


def models_folder() -> Path:
    found = Path(os.environ.get("HAGANE_CACHE", Path.home() / ".cache" / "hagane")) / "benchmarks"
    found.mkdir(parents=True, exist_ok=True)
    return found


def agree(names: Sequence[str]) -> int:
    """Print whether builds give what sessions do; return how many differ or are refused."""
    wrong = 0
    for name in names:
        case = CASES[name](models_folder(), name)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            try:
                options = BuildOptions(case.shapes, constants=case.constants)
                build_model(case.path, Path(folder) / "b", options, print)
            except HaganeError as error:
                print(f"{name}: refused: {error}")
                wrong += 1
                continue
            built = time.perf_counter() - start
            model = hagane.load_built(Path(folder) / "b")
            session = hagane.InferenceSession(_declaring(case, Path(folder)))
            texts = []
            for feed in case.feeds:
                given = feed | _constants(case)
                pairs = zip(model.run(None, feed), session.run(None, given), strict=True)
                texts.append(", ".join(_differences(pairs)))
            found = [text for text in texts if text]
            wrong += bool(found)
            told = "; ".join(found) or f"equal for {len(texts)} feeds"
            print(f"{name}: {told} ({built:.0f} s to build)", flush=True)
    return wrong


def _constants(case: Case) -> Feed:
    pairs = (text.partition("=") for text in case.constants)
    return {name: np.array(int(number)) for name, _, number in pairs}


def _declaring(case: Case, folder: Path) -> Path:
    """Return the model of a case, whose inputs declare the sizes that the build has fixed."""
    model = onnx.load(case.path)
    sizes = {text.rpartition("=")[0]: text.rpartition("=")[2].split(",") for text in case.shapes}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim, size in zip(dims, sizes.get(value.name, ()), strict=False):
            if ".." not in size:
                dim.dim_value = int(size)
    path = folder / "declaring.onnx"
    onnx.save(model, path)
    return path


def _differences(pairs: Iterator[tuple[np.ndarray, np.ndarray]]) -> Iterator[str]:
    for i, (ours, theirs) in enumerate(pairs):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            yield f"output {i} is {ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
        elif ours.tobytes() != theirs.tobytes():
            apart = np.abs(ours.astype(np.float64) - theirs).max()
            yield f"output {i} differs by {apart:.2g}"


def _write_feed(path: Path, feed: Feed) -> None:
    """Write inputs as ``ship.c`` reads them."""
    parts = [np.int64(len(feed)).tobytes()]
    for name, array in feed.items():
        kind, text = helper.np_dtype_to_tensor_dtype(array.dtype), name.encode()
        head = np.array([kind, array.ndim, array.nbytes, len(text)], np.int64)
        parts += [head.tobytes(), text, np.array(array.shape, np.int64).tobytes(), array.tobytes()]
    path.write_bytes(b"".join(parts))


def compiled_program(folder: Path) -> Path:
    """Compile ``ship.c``; return the program."""
    made = folder / "ship"
    source = Path(__file__).with_suffix(".c")
    header = Path(hagane.__file__).parent / "ship" / "c"
    find_compiler().call(["-O2", "-w", f"-I{header}", str(source), "-ldl"], made)
    return made


def onnxruntime_library() -> Path:
    found = find_spec("onnxruntime")
    assert found is not None
    assert found.origin is not None
    (library,) = (Path(found.origin).parent / "capi").glob("libonnxruntime.so.*")
    return library


def _session_ratio(case: Case, folder: Path, runs: int, rounds: int) -> float:
    """Return the median run of a build over that of a session, turn by turn."""
    model, session = hagane.load_built(folder), hagane.InferenceSession(case.path)
    ways: list[tuple[Callable[..., object], Feed]] = [
        (model.run, case.feeds[0]),
        (session.run, case.feeds[0] | _constants(case)),
    ]
    times: list[list[float]] = [[], []]
    for turn in range(2 * rounds + 1):
        for (run, feed), found in zip(ways, times, strict=True):
            for _ in range(runs):
                start = time.perf_counter()
                run(None, feed)
                found += [time.perf_counter() - start] if turn else []
    return statistics.median(times[0]) / statistics.median(times[1])


def measure(names: Sequence[str], runs: int, rounds: int) -> None:
    """Print a table of builds beside ONNX Runtime's library."""
    theirs = onnxruntime_library()
    print(f"onnxruntime {version('onnxruntime')}, {usable_cores()} threads, {rounds} rounds")
    print("| model | start | run | peak | size | session |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        program = compiled_program(folder)
        for name in names:
            case = CASES[name](models_folder(), name)
            build = folder / "build"
            build_model(case.path, build, BuildOptions(case.shapes, constants=case.constants))
            (library,) = build.glob("*.so")
            feeds = {"hagane": case.feeds[0], "onnxruntime": case.feeds[0] | _constants(case)}
            ways = {"hagane": (library, build), "onnxruntime": (theirs, case.path)}
            figures = timed(program, ways, feeds, runs, rounds)
            cells = [
                _cell(*(figures[engine][figure] for engine in figures), unit)
                for figure, unit in (("start", "ms"), ("run", "ms"), ("peak", "KiB"))
            ]
            sizes = library.stat().st_size / 1024, theirs.stat().st_size / 1024
            cells += [_cell(*sizes, "KiB"), f"{_session_ratio(case, build, runs, rounds):.2f}"]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def timed(
    program: Path,
    ways: Mapping[str, tuple[Path, Path]],
    feeds: Mapping[str, Feed],
    runs: int,
    rounds: int,
) -> dict[str, dict[str, float]]:
    """Return medians of the figures that ``ship.c`` prints, of several ways in turns.

    Args:
        program: ``ship.c``, compiled.
        ways: Library and build or model by name, which begins with ``hagane`` or ``onnxruntime``.
        feeds: The inputs of each.
        runs: Of each start of the program.
        rounds: Starts of the program for each way.
    """
    found: dict[str, dict[str, list[float]]] = {name: {} for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        for name, feed in feeds.items():
            _write_feed(Path(folder) / name, feed)
        for _ in range(rounds):
            for name, paths in ways.items():
                engine = name.split()[0]
                command = [program, engine, *paths, Path(folder) / name, runs, usable_cores()]
                line = [str(word) for word in command]
                done = subprocess.run(line, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise SystemExit(f"{name}, {paths[1]}: {done.stderr}")
                for figure, value in json.loads(done.stdout).items():
                    found[name].setdefault(figure, []).append(value)
    return {
        name: {figure: statistics.median(values) for figure, values in figures.items()}
        for name, figures in found.items()
    }


def _cell(ours: float, theirs: float, unit: str) -> str:
    return f"{ours / theirs:.3f} ({ours:.3g} {unit})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("agree", "measure"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=10, help="After the first of a start.")
    parser.add_argument("--rounds", type=int, default=7, help="Starts of each engine.")
    given = parser.parse_args()
    if given.what == "measure":
        measure(given.names or MEASURED, given.runs, given.rounds)
    else:
        raise SystemExit(agree(given.names or tuple(CASES)) > 0)


if __name__ == "__main__":
    main()
