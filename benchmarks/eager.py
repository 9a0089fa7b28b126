"""One eager training step of five models: hagane beside Chainer and PyTorch.

    python benchmarks/eager.py [--chainer PYTHON] [--rounds N] [MODEL ...]

``--chainer`` names the Python of an environment with Chainer 7.8.1 (NumPy below 2); without it
PyTorch alone is beside. Each engine runs in a process of its own, rounds alternate, and each figure
is the least time of a step over all rounds. Ratios are the other engine's time over hagane's, so
above 1 hagane is faster. ``--first`` takes the time from the start of Python to the end of the
first step of LeNet, with empty caches.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

MODELS = ("mlp", "lenet", "resnet18", "lstm", "transformer")
SOURCE = Path(__file__).resolve().parents[1] / "src"


def batch(model: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the input and the classes of a step."""
    random = np.random.RandomState(0)
    if model in ("lstm", "transformer"):
        words = 1000
        tokens = random.randint(0, words, (20, 36) if model == "lstm" else (8, 65))
        return tokens[:, :-1].astype(np.int32), tokens[:, 1:].astype(np.int32)
    shape = {"mlp": (100, 784), "lenet": (64, 1, 28, 28), "resnet18": (32, 3, 32, 32)}[model]
    return random.randn(*shape).astype(np.float32), random.randint(0, 10, shape[0]).astype(np.int32)


def chainer_step(chainer: Any, model: str) -> Any:
    """Return a function that takes one training step, written for Chainer."""
    F, L = (
        importlib.import_module(f"{chainer.__name__}.{name}") for name in ("functions", "links")
    )

    class Chain(chainer.Chain):  # type: ignore[misc, name-defined]
        def __init__(self, **links: Any):
            super().__init__()
            with self.init_scope():
                for name, link in links.items():
                    setattr(self, name, link)

    class Perceptron(Chain):
        def __init__(self) -> None:
            super().__init__(a=L.Linear(784, 1000), b=L.Linear(1000, 1000), c=L.Linear(1000, 10))

        def forward(self, x: Any) -> Any:
            return self.c(F.relu(self.b(F.relu(self.a(x)))))

    class LeNet(Chain):
        def __init__(self) -> None:
            super().__init__(
                a=L.Convolution2D(1, 20, 5), b=L.Convolution2D(20, 50, 5),
                c=L.Linear(800, 500), d=L.Linear(500, 10),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            h = F.max_pooling_2d(F.relu(self.a(x)), 2)
            h = F.max_pooling_2d(F.relu(self.b(h)), 2)
            return self.d(F.relu(self.c(h)))

    class Block(Chain):
        def __init__(self, into: int, out: int, stride: int):
            super().__init__(
                a=L.Convolution2D(into, out, 3, stride, 1, nobias=True),
                an=L.BatchNormalization(out),
                b=L.Convolution2D(out, out, 3, 1, 1, nobias=True),
                bn=L.BatchNormalization(out),
            )
            self.reduces = stride != 1 or into != out
            if self.reduces:
                with self.init_scope():
                    self.s = L.Convolution2D(into, out, 1, stride, nobias=True)
                    self.sn = L.BatchNormalization(out)

        def forward(self, x: Any) -> Any:
            h = self.bn(self.b(F.relu(self.an(self.a(x)))))
            return F.relu(h + (self.sn(self.s(x)) if self.reduces else x))

    class ResNet(Chain):
        def __init__(self) -> None:
            super().__init__(
                stem=L.Convolution2D(3, 64, 3, 1, 1, nobias=True), norm=L.BatchNormalization(64),
                out=L.Linear(512, 10),
            )  # fmt: skip
            sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2),
                     (256, 256, 1), (256, 512, 2), (512, 512, 1)]  # fmt: skip
            with self.init_scope():
                self.blocks = chainer.Sequential(*[Block(*size) for size in sizes])

        def forward(self, x: Any) -> Any:
            h = self.blocks(F.relu(self.norm(self.stem(x))))
            return self.out(F.average(h, axis=(2, 3)))

    class Language(Chain):
        def __init__(self) -> None:
            super().__init__(
                embed=L.EmbedID(1000, 200), a=L.LSTM(200, 200), b=L.LSTM(200, 200),
                out=L.Linear(200, 1000),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            self.a.reset_state()
            self.b.reset_state()
            found = [self.b(self.a(self.embed(x[:, i]))) for i in range(x.shape[1])]
            return self.out(F.concat(found, axis=0))

    class Layer(Chain):
        def __init__(self, units: int):
            super().__init__(
                n=L.LayerNormalization(units), m=L.LayerNormalization(units),
                q=L.Linear(units, units), k=L.Linear(units, units), v=L.Linear(units, units),
                o=L.Linear(units, units), up=L.Linear(units, 4 * units),
                down=L.Linear(4 * units, units),
            )  # fmt: skip

        def forward(self, x: Any, size: tuple[int, int, int], mask: Any) -> Any:
            n, time, units = size
            h = self.n(x)
            q, k, v = (
                F.transpose(F.reshape(link(h), (n, time, 4, units // 4)), (0, 2, 1, 3))
                for link in (self.q, self.k, self.v)
            )
            scores = F.matmul(q, k, transb=True) * (units // 4) ** -0.5
            weights = F.softmax(scores + mask, axis=3)
            h = F.reshape(F.transpose(F.matmul(weights, v), (0, 2, 1, 3)), (n * time, units))
            x = x + self.o(h)
            return x + self.down(F.relu(self.up(self.m(x))))

    class Transformer(Chain):
        def __init__(self) -> None:
            super().__init__(
                embed=L.EmbedID(1000, 128), norm=L.LayerNormalization(128), out=L.Linear(128, 1000),
                **{f"layer{i}": Layer(128) for i in range(4)},
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            n, time = x.shape
            mask = np.triu(np.full((time, time), -1e9, np.float32), 1)
            mask = np.broadcast_to(mask, (n, 4, time, time)).copy()
            h = F.reshape(self.embed(x), (n * time, 128))
            for i in range(4):
                h = getattr(self, f"layer{i}")(h, (n, time, 128), mask)
            return self.out(self.norm(h))

    makers = dict(zip(MODELS, (Perceptron, LeNet, ResNet, Language, Transformer), strict=True))
    np.random.seed(0)
    made = makers[model]()
    optimizer = chainer.optimizers.MomentumSGD(0.01).setup(made)
    x, t = batch(model)
    # The words of a recurrent model come step by step.
    t = t.T.reshape(-1) if model == "lstm" else t.reshape(-1)

    def step() -> float:
        loss = F.softmax_cross_entropy(made(x), t)
        made.cleargrads()
        loss.backward()
        optimizer.update()
        return float(loss.array)

    return step


def torch_step(model: str) -> Any:
    """Return a function that takes one training step of PyTorch's."""
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, into: int, out: int, stride: int):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out),
            )  # fmt: skip
            self.short = nn.Sequential()
            if stride != 1 or into != out:
                self.short = nn.Sequential(
                    nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out)
                )

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.short(x))

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.out = nn.Embedding(1000, 200), nn.Linear(200, 1000)
            self.cells = nn.ModuleList([nn.LSTMCell(200, 200), nn.LSTMCell(200, 200)])

        def forward(self, x: Any) -> Any:
            states: list[Any] = [None, None]
            found = []
            for i in range(x.shape[1]):
                h = self.embed(x[:, i])
                for j, cell in enumerate(self.cells):
                    states[j] = cell(h, states[j])
                    h = states[j][0]
                found.append(h)
            return self.out(torch.cat(found))

    class Layer(nn.Module):
        def __init__(self, units: int):
            super().__init__()
            self.n, self.m = nn.LayerNorm(units), nn.LayerNorm(units)
            self.q, self.k, self.v, self.o = (nn.Linear(units, units) for _ in range(4))
            self.up, self.down = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

        def forward(self, x: Any, mask: Any) -> Any:
            n, time, units = x.shape
            h = self.n(x)
            q, k, v = (
                one(h).reshape(n, time, 4, units // 4).transpose(1, 2)
                for one in (self.q, self.k, self.v)
            )
            weights = torch.softmax(q @ k.transpose(2, 3) * (units // 4) ** -0.5 + mask, -1)
            x = x + self.o((weights @ v).transpose(1, 2).reshape(n, time, units))
            return x + self.down(torch.relu(self.up(self.m(x))))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(1000, 128), nn.LayerNorm(128)
            self.out = nn.Linear(128, 1000)
            self.layers = nn.ModuleList([Layer(128) for _ in range(4)])

        def forward(self, x: Any) -> Any:
            mask = torch.triu(torch.full((x.shape[1],) * 2, -1e9), 1)
            h = self.embed(x)
            for layer in self.layers:
                h = layer(h, mask)
            return self.out(self.norm(h))

    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1),
             (256, 512, 2), (512, 512, 1)]  # fmt: skip
    relu, flat = nn.ReLU, nn.Flatten
    made: Any = {
        "mlp": lambda: nn.Sequential(
            nn.Linear(784, 1000), relu(), nn.Linear(1000, 1000), relu(), nn.Linear(1000, 10)
        ),
        "lenet": lambda: nn.Sequential(
            nn.Conv2d(1, 20, 5), relu(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), relu(),
            nn.MaxPool2d(2), flat(), nn.Linear(800, 500), relu(), nn.Linear(500, 10),
        ),
        "resnet18": lambda: nn.Sequential(
            nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), relu(),
            *[Block(*size) for size in sizes],
            nn.AdaptiveAvgPool2d(1), flat(), nn.Linear(512, 10),
        ),
        "lstm": Language,
        "transformer": Transformer,
    }[model]()  # fmt: skip
    optimizer = torch.optim.SGD(made.parameters(), lr=0.01, momentum=0.9)
    inputs, labels = batch(model)
    x = torch.from_numpy(inputs if inputs.dtype == np.float32 else inputs.astype(np.int64))
    t = torch.from_numpy((labels.T if model == "lstm" else labels).reshape(-1).astype(np.int64))

    def step() -> float:
        y = made(x)
        loss = nn.functional.cross_entropy(y.reshape(-1, y.shape[-1]), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss)

    return step


def work(engine: str, model: str, seconds: float) -> None:
    """Print the least time of a step, in milliseconds, and the loss of the first."""
    if engine == "torch":
        step = torch_step(model)
    else:
        if engine == "hagane":
            sys.path.insert(0, str(SOURCE))
        step = chainer_step(importlib.import_module(engine), model)
    first = step()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begun = time.perf_counter()
        step()
        times.append(time.perf_counter() - begun)
    print(json.dumps({"ms": min(times) * 1e3, "loss": first}))


def first_step() -> None:
    """Print the seconds from the start of Python to the end of LeNet's first step."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HAGANE_CACHE": folder, "XDG_CACHE_HOME": folder}
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, __file__, "--worker", "hagane", "lenet", "0"],
            check=True, stdout=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        print(f"Start, first step of LeNet and three more: {time.perf_counter() - begun:.1f} s")


def main() -> None:
    """Run the comparison."""
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--chainer", help="the Python of an environment with Chainer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each round")
    parser.add_argument("--first", action="store_true")
    options = parser.parse_args()
    if not set(options.models) <= set(MODELS):
        parser.error(f"expected models among {', '.join(MODELS)}")
    if options.first:
        first_step()
        return
    pythons = {"hagane": sys.executable, "torch": sys.executable}
    if options.chainer:
        pythons["chainer"] = options.chainer
    ratios: dict[str, list[float]] = {name: [] for name in pythons if name != "hagane"}
    print(f"{'model':12}" + "".join(f"{name + ' ms':>13}" for name in pythons))
    for model in options.models or MODELS:
        found: dict[str, list[float]] = {name: [] for name in pythons}
        for _ in range(options.rounds):
            for name, python in pythons.items():
                done = subprocess.run(
                    [python, __file__, "--worker", name, model, str(options.seconds)],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
                found[name].append(json.loads(done.stdout.splitlines()[-1])["ms"])
        least = {name: min(times) for name, times in found.items()}
        line = f"{model:12}" + "".join(f"{least[name]:13.1f}" for name in pythons)
        for name, row in ratios.items():
            row.append(least[name] / least["hagane"])
            line += f"   {name} / hagane {row[-1]:.2f}"
        print(line, flush=True)
    for name, row in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, row)))
        print(f"geometric mean {name} / hagane: {mean:.2f}")


if __name__ == "__main__":
    main()
