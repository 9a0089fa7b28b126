"""Saliency in batches against a pass a point, faithfulness of each method, a long log.

    python benchmarks/rl.py [speed | faithful | log]

``speed``: a DQN over 4 × 84 × 84 (Mnih et al. 2015) with random weights, 81 points, on two cores;
rounds alternate, medians and ratios are shown. The original, ChainerRL Visualizer, blurs the
picture and makes the mask anew for each point, with SciPy over all three axes; ``a pass a point``
does what it does with hagane's own matrices. ``faithful``: deletion and insertion against random
order, and the sanity checks, for the agents that ship. ``log``: opening 100,000 steps.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from scipy.ndimage import gaussian_filter

from hagane.tools.rl.agents.load import load_agent
from hagane.tools.rl.agents.onnx import OnnxAgent
from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.environments import make_world
from hagane.tools.rl.explain.job import Request, explain_steps
from hagane.tools.rl.explain.perturbing import Grid, greydanus, one_by_one, upsampled
from hagane.tools.rl.explain.subject import Subject, Target
from hagane.tools.rl.jobs.rollout import roll_out
from hagane.tools.rl.logs.records import log_of

AGENTS = Path(__file__).parents[1] / "examples" / "rl" / "agents"


def nature(actions: int = 6) -> bytes:
    """Return a DQN for Atari with random weights, in ONNX."""
    draw = np.random.default_rng(0)
    weights, nodes, value = [], [], "observation"

    def weight(name: str, *shape: int) -> str:
        spread = np.sqrt(2 / np.prod(shape[1:]))
        array = draw.normal(0, spread, shape).astype(np.float32)
        weights.append(numpy_helper.from_array(array, name))
        return name

    layers = [(32, 4, 8, 4), (64, 32, 4, 2), (64, 64, 3, 1)]
    for index, (out, into, side, stride) in enumerate(layers):
        name = weight(f"c{index}", out, into, side, side)
        strides = [stride, stride]
        nodes.append(helper.make_node("Conv", [value, name], [f"h{index}"], strides=strides))
        nodes.append(helper.make_node("Relu", [f"h{index}"], [f"r{index}"]))
        value = f"r{index}"
    nodes.append(helper.make_node("Flatten", [value], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", weight("d0", 512, 3136)], ["d"], transB=1))
    nodes.append(helper.make_node("Relu", ["d"], ["e"]))
    nodes.append(
        helper.make_node("Gemm", ["e", weight("d1", actions, 512)], ["action_values"], transB=1)
    )
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "dqn",
        [helper.make_tensor_value_info("observation", kind, ["batch", 4, 84, 84])],
        [helper.make_tensor_value_info("action_values", kind, ["batch", actions])],
        weights,
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def as_the_original(subject: Subject, target: Target, grid: Grid) -> np.ndarray:
    """Return the map by the original's steps: mask, blur and pass for each point.

    Its masks; the frames of a stack are blurred each by itself, so that the maps are comparable.
    """
    observation, (height, width) = subject.base, subject.plane
    before = target.parts(subject.outputs(observation[None]))[0]
    scores = np.zeros((height // grid.density + 1, width // grid.density + 1))
    for i in range(0, height, grid.density):
        for j in range(0, width, grid.density):
            y, x = np.ogrid[-i : height - i, -j : width - j]
            distance = x * x + y * y
            mask = (distance / distance.max() >= 0.01).astype(np.float64)
            mask = gaussian_filter(mask, sigma=grid.radius)
            blurred = gaussian_filter(observation, sigma=(0, grid.blur, grid.blur))
            seen = (observation * mask + blurred * (1 - mask)).astype(np.float32)
            after = target.parts(subject.outputs(seen[None]))[0]
            scores[i // grid.density, j // grid.density] = ((before - after) ** 2).sum()
    return upsampled(scores, height, width)


def speed(rounds: int = 15) -> None:
    """Time the ways and compare their maps."""
    observation = np.random.default_rng(1).random((4, 84, 84)).astype(np.float32)
    subject = Subject(Watched(OnnxAgent(nature())), observation)
    target, grid = Target("action_values"), Grid(form="disc")
    ways: dict[str, Callable[[], np.ndarray]] = {
        "in batches": lambda: greydanus(subject, {"q": target}, grid)["q"],
        "a pass a point": lambda: one_by_one(subject, {"q": target}, grid)["q"],
        "the original's steps": lambda: as_the_original(subject, target, grid),
    }
    maps = {name: way() for name, way in ways.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    first = statistics.median(times["in batches"])
    for name, found in maps.items():
        middle = statistics.median(times[name])
        apart = np.abs(found - maps["in batches"]).max() / maps["in batches"].max()
        print(
            f"{name:22} {1e3 * middle:8.2f} ms  {middle / first:6.1f} times  maps {apart:.1e} apart"
        )


def faithful() -> None:
    """Show each method's checks for the agents that ship."""
    for path in sorted(AGENTS.glob("*.onnx")):
        if "early" in path.name:
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
    for word in sys.argv[1:] or ["speed", "faithful", "log"]:
        {"speed": speed, "faithful": faithful, "log": log}[word]()
