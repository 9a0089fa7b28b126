"""Saliency in one graph against a pass a point, faithfulness of each method, a long log.

    python benchmarks/rl.py [speed | original FOLDER [PYTHON] | faithful [AGENT ...] | log]

``speed``: a DQN over 4 × 84 × 84 (Mnih et al. 2015) with random weights, 81 points; rounds
alternate, medians and ratios are shown. ``a pass a point`` has the masks and blurs of hagane.
``original``: ChainerRL Visualizer's own functions from a source tree of it, which make a mask and
blur the picture anew for each point, with the network in Chainer (under an interpreter that has
it), in PyTorch and in hagane. ``faithful``: deletion and insertion against random order, and the
sanity checks, for the agents that ship; curves are shown at 10, 25, 50 and 75 % of the parts.
``log``: opening 100,000 steps.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rl_original import LAYERS, dqn_weights

from hagane.tools.rl.agents.load import load_agent
from hagane.tools.rl.agents.onnx import OnnxAgent
from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.environments import make_world
from hagane.tools.rl.explain.job import Request, explain_steps
from hagane.tools.rl.explain.perturbing import (
    Grid,
    blends_of,
    greydanus,
    one_by_one,
    upsampled,
)
from hagane.tools.rl.explain.subject import Subject, Target
from hagane.tools.rl.jobs.rollout import roll_out
from hagane.tools.rl.logs.records import log_of

AGENTS = Path(__file__).parents[1] / "examples" / "rl" / "agents"


def nature(actions: int = 6) -> bytes:
    """Return a DQN for Atari with random weights, in ONNX."""
    weights = {f"w{i}": array for i, array in enumerate(dqn_weights(actions))}
    nodes, value = [], "observation"
    for index, (*_, stride) in enumerate(LAYERS):
        strides = [stride, stride]
        nodes.append(helper.make_node("Conv", [value, f"w{index}"], [f"h{index}"], strides=strides))
        nodes.append(helper.make_node("Relu", [f"h{index}"], [f"r{index}"]))
        value = f"r{index}"
    nodes.append(helper.make_node("Flatten", [value], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "w3"], ["d"], transB=1))
    nodes.append(helper.make_node("Relu", ["d"], ["e"]))
    nodes.append(helper.make_node("Gemm", ["e", "w4"], ["action_values"], transB=1))
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "dqn",
        [helper.make_tensor_value_info("observation", kind, ["batch", 4, 84, 84])],
        [helper.make_tensor_value_info("action_values", kind, ["batch", actions])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def speed(rounds: int = 15) -> None:
    """Time hagane's own ways and compare their maps."""
    observation = np.random.default_rng(1).random((4, 84, 84)).astype(np.float32)
    subject = Subject(Watched(OnnxAgent(nature())), observation)
    target, grid = Target("action_values"), Grid(form="disc", across=True)
    blends = blends_of(subject, grid)
    ways: dict[str, Callable[[], np.ndarray]] = {
        "one graph": lambda: greydanus(subject, {"q": target}, grid, blends)["q"],
        "a batch": lambda: greydanus(subject, {"q": target}, grid)["q"],
        "a pass a point": lambda: one_by_one(subject, {"q": target}, grid)["q"],
    }
    compared(ways, rounds)


def original(folder: str, rounds: int = 9, python: str = "") -> None:
    """Time the original's own functions over several engines beside hagane's, and compare maps.

    Args:
        folder: a source tree of chainer/chainerrl-visualizer.
        rounds: of the alternation.
        python: an interpreter with Chainer 7.8.1 and SciPy, for its column.
    """
    observation = np.random.default_rng(1).random((4, 84, 84)).astype(np.float32)
    model = nature()
    subject = Subject(Watched(OnnxAgent(model)), observation)
    target, grid = Target("action_values"), Grid(form="disc", across=True)
    blends = blends_of(subject, grid)
    peers = {
        f"the original over {name}": Peer(folder, name, python if name == "Chainer" else "")
        for name in ("Chainer", "PyTorch", "hagane")
        if name != "Chainer" or python
    }
    ways: dict[str, Callable[[], np.ndarray]] = {
        "one graph": lambda: greydanus(subject, {"q": target}, grid, blends)["q"],
        "a batch": lambda: greydanus(subject, {"q": target}, grid)["q"],
        **{name: peer.map for name, peer in peers.items()},
    }
    exact = Peer(folder, "float64", "")
    compared(ways, rounds, exact.map())
    for peer in (exact, *peers.values()):
        peer.close()


def compared(
    ways: dict[str, Callable[[], np.ndarray]], rounds: int, exact: np.ndarray | None = None
) -> None:
    """Run ways in turn; print medians, ratios to the first, distances of maps from it and exact."""
    maps = {name: way() for name, way in ways.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    names = list(ways)
    first = statistics.median(times[names[0]])
    largest = maps[names[0]].max()
    for name, found in maps.items():
        middle = statistics.median(times[name])
        apart = np.abs(found - maps[names[0]]).max()
        rounds_of = [slow / fast for slow, fast in zip(times[name], times[names[0]], strict=True)]
        words = f"{name:26} {1e3 * middle:8.2f} ms  {middle / first:6.1f} times "
        words += f"({min(rounds_of):.1f} to {max(rounds_of):.1f} in a round)  "
        words += f"maps {apart:.1e} apart, {apart / largest:.1e} of the largest value"
        if exact is not None:
            words += f", {np.abs(found - exact).max() / largest:.1e} from float64"
        print(words)


class Peer:
    """The original's saliency in a process of its own, which answers with maps."""

    def __init__(self, folder: str, engine: str, python: str):
        script = Path(__file__).with_name("rl_original.py")
        self.process = subprocess.Popen(
            [python or sys.executable, str(script), folder, engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def map(self) -> np.ndarray:
        """Ask for the map of the observation."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"again\n")
        self.process.stdin.flush()
        scores = np.frombuffer(self.process.stdout.read(8 * 81), np.float64).reshape(9, 9)
        return upsampled(scores, 84, 84)

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def faithful(names: Sequence[str] = ()) -> None:
    """Show each method's checks, and its curves beside random order, for the agents that ship.

    Args:
        names: of the agents; none for all.
    """
    for path in sorted(AGENTS.glob("*.onnx")):
        if "early" in path.name or (names and path.stem not in names):
            continue
        agent, _ = load_agent(str(path))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "images").mkdir()
            world = make_world(agent.agent.env)
            roll_out(agent, world, folder, 100, 0, lambda done, total: None)
            methods = ["occlusion", "integrated_gradients", "smoothgrad"]
            if "bricks" in path.name:
                methods = ["greydanus", *methods, "objects"]
            for method in methods:
                request = Request(20, 60, method)
                explain_steps(agent, world, folder, method, request, lambda done, total: None)
                meta = json.loads((folder / "explanations" / method / "meta.json").read_text())
                for check in meta["checks"]:
                    verdict = {True: "holds", False: "fails", None: "-"}[check["holds"]]
                    words = f"{path.stem:18} {method:21} {check['name']:42}"
                    print(f"{words} {verdict:6} {check['value']}")
                for output, curves in meta["curves"].items():
                    for key, line in curves.items():
                        quarters = [
                            f"{np.interp(q, np.linspace(0, 1, len(line)), line):.2f}"
                            for q in (0.1, 0.25, 0.5, 0.75)
                        ]
                        words = f"{path.stem:18} {method:21} {output}: {key.replace('_', ' ')}"
                        print(f"{words:82} area {np.mean(line):.2f}, at {' '.join(quarters)}")


def log(steps: int = 100_000) -> None:
    """Time opening a long log, parsed and from kept columns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw = np.random.default_rng(0)
        with open(folder / "rollout_log.jsonl", "w", encoding="utf-8") as file:
            for step in range(steps):
                values = [float(value) for value in draw.normal(size=2)]
                row = {"step": step, "reward": 1.0, "action": step % 2, "action_values": values}
                file.write(json.dumps({**row, "image_path": f"images/{step}.png"}) + "\n")
        start = time.perf_counter()
        found = log_of(folder)
        parsed = time.perf_counter() - start
        found.keep()
        start = time.perf_counter()
        log_of(folder)
        kept = time.perf_counter() - start
        print(f"{steps:,} steps: parsed {parsed:.2f} s, kept columns {kept:.3f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["original"]:
        original(sys.argv[2], python="".join(sys.argv[3:4]))
    elif sys.argv[1:2] == ["faithful"]:
        faithful(sys.argv[2:])
    else:
        for word in sys.argv[1:] or ["speed", "faithful", "log"]:
            {"speed": speed, "faithful": faithful, "log": log}[word]()
