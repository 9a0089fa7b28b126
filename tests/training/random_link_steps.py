"""Random programs that train links: a chain, a loss, an optimizer and the course of ten steps.

``python -m tests.training.random_link_steps FIRST COUNT [dtype]`` compares compiled steps with
``optimizer.update``, and tells the seeds of programs that differ or are refused.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import hagane
from tests.training.random_programs import chosen, loaded, tables_of

TABLES = tables_of("random_link_steps.txt")

_HEAD = """
import io

import numpy as np

import hagane
import hagane.functions as F
import hagane.links as L


class State:
    def __init__(self, rate):
        self.rate = rate


model_scale = 1.5
model_doubled = False
model_ratio = 0.3
model_functions = [F.relu, F.sigmoid]
model_table = np.array([0.5, 1.5, 0.5])
model_weights = np.array([1.0, 2.0, 0.5])
model_state = State(1.0)
model_other = L.Linear(3, 3, initialW=np.full((3, 3), 0.3, hagane.config.dtype))


def half(x):
    return 0.5 * x


def saved(model, optimizer):
    for kept in (model, optimizer):
        file = io.BytesIO()
        hagane.serializers.save_npz(file, kept)
        file.seek(0)
        hagane.serializers.load_npz(file, kept)
"""

_PLAIN = """
self.scale, self.rectified, self.kind, self.index = 1.0, True, 'tanh', 0
self.repeats, self.options, self.ratio, self.gain = [1, 2], {'gain': 2.0}, 0.4, 0.1
self.table, self.long = np.array([1.0, 0.5]), np.ones(5000)
self.changed = half
""".strip().splitlines()


def _module(init: list[str], forward: list[str], result: str) -> str:
    lines = ["class Net(hagane.Chain):", "    def __init__(self):", "        super().__init__()"]
    lines += [f"        {line}" for line in _PLAIN]
    lines += ["        with self.init_scope():", "            pass"]
    lines += [f"            {line}" for line in init if line]
    lines += ["", "    def bent(self, x):", "        return x + 0.1 * F.sin(x)", ""]
    lines += ["    def forward(self, x):", "        x = F.identity(x)", "        y = x"]
    lines += [f"        {part}" for line in forward for part in line.split("\n")]
    return "\n".join([*lines, f"        return {result}", ""])


@contextmanager
def settings(dtype: Any) -> Iterator[None]:
    """Set the configuration of programs, and put it back."""
    with ExitStack() as stack:
        for name, value in (("train", True), ("dtype", dtype)):
            stack.enter_context(hagane.using_config(name, value))
        yield


def _runs(init: list[str], forward: list[str], x: Any) -> Any:
    """Return what a chain of these lines gives, None where it fails."""
    scope: dict[str, Any] = {}
    try:
        exec(_HEAD + _module(init, forward, "x"), scope)
        np.random.seed(0)
        found = scope["Net"]()(x)
    except Exception:
        return None
    if not isinstance(found, hagane.Variable) or found.dtype != np.float64 or found.ndim < 2:
        return None
    array = found.array
    good = array.size <= 20_000 and array.shape[0] == x.shape[0] and 0 not in array.shape
    return array if good and np.isfinite(array).all() else None


def program(seed: int) -> str:
    """Return the text of a program: ``Net``, ``loss``, ``batch``, ``setup``, ``before``."""
    draw = random.Random(seed)
    kind = draw.choice(["vectors", "images"])
    rank = draw.choice([1, 2, 2, 3])
    c = draw.choice([3, 4, 5, 8, 17])
    shape: tuple[int, ...] = (c,)
    if kind == "images":
        shape = (c, *(draw.choice([5, 6, 7, 8]) for _ in range(rank)))
    init: list[str] = []
    forward: list[str] = []
    x = np.random.RandomState(seed).randn(4, *shape)
    now, wanted = x, draw.randint(2, 6)
    with settings(np.float64):
        for number in range(40):
            if wanted == 0:
                break
            source = TABLES[kind] if draw.random() < 0.5 else TABLES["everywhere"]
            one, _, line = draw.choice(source).rpartition(" => ")
            names = {"m": f"l{number}", "c": now.shape[1], "r": rank}
            both = chosen(draw, f"{one}\0{line}", int(now.shape[1]), **names).split("\0")
            made, done = both[0].split("; "), both[1].replace(";; ", "\n").replace("; ", "\n")
            found = _runs([*init, *made], [*forward, done], x)
            if found is None or found.ndim != now.ndim:
                continue
            init += made
            forward += [done]
            now, wanted = found, wanted - 1
    forward += ["x = x.reshape((x.shape[0], -1))"]
    init += [f"self.last = L.Linear({int(np.prod(now.shape[1:]))}, 3)"]
    parts = [draw.choice(TABLES["losses"])]
    if draw.random() < 0.3:
        parts.append(draw.choice(TABLES["more"]))
    loss = chosen(draw, "\0".join(parts)).replace("\0", " + ")
    optimizer = chosen(draw, draw.choice(TABLES["optimizers"]))
    hooks = [draw.choice(TABLES["hooks"]) for _ in range(draw.choice([0, 0, 1, 2]))]
    batches = [draw.choice([4, 4, 3, 1, 6, 8]) for _ in range(3)]
    sizes = [batches[0]] * 6 + [batches[1]] * 3 + [batches[2]]
    if draw.random() < 0.5:
        sizes = [4] * 9 + [3]
    text = "\n".join([*init, *forward, loss])
    events: dict[int, list[str]] = {}
    fitting = [e for e in TABLES["events"] if _concerns(e, text)]
    for _ in range(draw.choice([1, 2, 3, 4])):
        source = fitting if fitting and draw.random() < 0.8 else TABLES["events"]
        events.setdefault(draw.randint(1, 8), []).append(chosen(draw, draw.choice(source)))
    options = draw.choice(["{}"] * 4 + ["dict(accumulate=2)"])
    named = ["first", "second"]
    before = [f"    if number == {n}:\n        {text}" for n, texts in sorted(events.items())
              for text in texts]  # fmt: skip
    return "\n".join([
        _HEAD, "", _module(init, forward, "self.last(x)"), "",
        "def loss(model, x, t, r):", "    x = model(x)", f"    return {loss}", "", "",
        "def setup(model):", f"    optimizer = hagane.optimizers.{optimizer}.setup(model)",
        *(f"    optimizer.add_hook(hagane.optimizer_hooks.{h}, '{n}')"
          for n, h in zip(named, hooks, strict=False)),
        "    return optimizer", "", "",
        "def batch(number, dtype):", f"    size = {sizes}[number]",
        "    draw = np.random.RandomState(number)",
        f"    x = draw.randn(size, {', '.join(map(str, shape))}).astype(dtype)",
        "    return x, draw.randint(0, 3, size).astype('i'), draw.randn(size, 3).astype(dtype)",
        "", "",
        "def before(number, model, optimizer, here):", *(before or ["    pass"]), "", "",
        f"options = {options}", "",
    ])  # fmt: skip


def _concerns(event: str, text: str) -> bool:
    """Whether an event names something that a program reads."""
    words = set(re.findall(r"(?:here|model)\.(\w+)|config\.(train)|Net\.(\w+)", event))
    read = [word for found in words for word in found if word]
    read += ["Batch"] if "avg_" in event or "decay" in event else []
    return any(word in text for word in read if word not in ("params", "links", "last"))


class Unfit(Exception):
    """Training fails without compiling, too, or its numbers grow beyond sense."""


def _state(model: Any, optimizer: Any) -> dict[str, Any]:
    """Return a copy of parameters, persistent values and the optimizer's states."""
    found: dict[str, Any] = {}
    for path, param in model.namedparams():
        found[path] = np.array(param.array)
        for name, value in (param.update_rule.state or {}).items():
            found[f"{path}.{name}"] = np.array(value)
    for path, link in model.namedlinks():
        for name in link._persistent:
            found[f"{path}/{name}"] = np.array(getattr(link, name))
    return found


def _updated(optimizer: Any, function: Any, *given: Any) -> Any:
    """Return the loss of an update by the optimizer."""
    kept: list[Any] = []

    def loss(*arguments: Any) -> Any:
        kept.append(function(*arguments))
        return kept[0]

    optimizer.update(loss, *given)
    return kept[0]


def course(found: Any, dtype: Any, *, compiled: bool) -> Iterator[dict[str, Any]]:
    """Yield loss and state of ten steps."""
    with settings(dtype):
        np.random.seed(0)
        model = found.Net()
        optimizer = found.setup(model)
        every = found.options.get("accumulate", 1)
        step = hagane.compile(found.loss, optimizer, **found.options) if compiled else None
        for number in range(10):
            np.random.seed(number)
            found.before(number, model, optimizer, found)
            given = found.batch(number, dtype)
            if step is not None:
                loss = step(model, *given)
            elif every == 1:
                loss = _updated(optimizer, found.loss, model, *given)
            else:
                loss = found.loss(model, *given)
                if number % every == 0:
                    model.cleargrads()
                (loss / every).backward()
                if number % every == every - 1:
                    optimizer.update()
            yield {"loss": np.array(loss.array), **_state(model, optimizer)}


def differences(text: str, folder: Path, dtype: Any, rtol: float) -> str:
    """Return where compiled steps part from the optimizer's, nothing if they do not.

    Raises:
        Unfit: The optimizer fails.
    """
    both = []
    with settings(dtype):
        for name in ("ours", "theirs"):
            (folder / name).mkdir(exist_ok=True)
            both.append(loaded(text, folder / name))
    try:
        wanted = list(course(both[1], dtype, compiled=False))
    except Exception as error:
        raise Unfit(f"{type(error).__name__}: {error}") from error
    if not all(abs(step["loss"]) < 1e6 for step in wanted):
        raise Unfit("the loss grows")
    for number, found in enumerate(course(both[0], dtype, compiled=True)):
        for name, value in wanted[number].items():
            if name not in found:
                return f"step {number}: {name} is missing"
            if told := apart(found[name], value, rtol):
                return f"step {number}: {name} {told}"
    return ""


def apart(found: Any, wanted: Any, rtol: float) -> str:
    """Return how two arrays differ, nothing if they agree."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"is {found.dtype} {found.shape}, not {wanted.dtype} {wanted.shape}"
    if not wanted.size:
        return ""
    scale, worst = float(np.abs(wanted).max()), float(np.abs(found - wanted).max())
    return "" if worst <= rtol * max(scale, 1e-2) else f"differs by {worst:.2g} of {scale:.2g}"


def main() -> None:
    """Try programs and print what differs."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    dtype: Any = np.dtype(sys.argv[3]).type if len(sys.argv) > 3 else np.float64
    rtol = 1e-8 if dtype == np.float64 else 2e-3
    counts = {"agree": 0, "unfit": 0, "refused": 0, "wrong": 0}
    for seed in range(first, first + count):
        folder = Path(tempfile.mkdtemp(prefix="steps"))
        text = program(seed)
        try:
            told = differences(text, folder, dtype, rtol)
            counts["wrong" if told else "agree"] += 1
            if told:
                print(seed, "WRONG", told, folder, flush=True)
        except Unfit as error:
            counts["unfit"] += 1
            print(seed, "unfit", str(error)[:100], flush=True)
        except Exception as error:
            counts["refused"] += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__} {str(error)[:300]!r}"
            print(seed, told, f"{place.filename}:{place.lineno}", folder, flush=True)
    print(counts)


if __name__ == "__main__":
    main()
