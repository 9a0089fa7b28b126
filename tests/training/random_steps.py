"""Random programs that train: a module, a loss, an optimizer and the course of ten steps.

``python -m tests.training.random_steps FIRST COUNT [dtype]`` compares compiled steps with those of
PyTorch, and tells the seeds of programs that differ or are refused.
"""

from __future__ import annotations

import copy
import random
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.training.random_programs import chosen, loaded, tables_of

TABLES = tables_of("random_steps.txt")
# From this seed on courses are rough: steps by hand between compiled ones, parameters that are
# replaced, optimizers of a part of the module and the like.
ROUGH = 100_000
# Gradients that are summed over calls lie in the step, where such events do not reach them.
_OF_GRADIENTS = ("grad()", ".grad")


def _runs(init: Sequence[str], forward: Sequence[str], x: Any) -> Any:
    """Return what a module of these lines gives, None where PyTorch fails."""
    scope: dict[str, Any] = {"torch": torch, "nn": nn, "F": F}
    text = _module(init, forward, "x")
    try:
        exec(text, scope)
        torch.manual_seed(0)
        found = scope["Net"]().double()(x)
    except Exception:
        return None
    good = isinstance(found, torch.Tensor) and found.dtype == torch.float64
    if not good or found.dim() < 2 or found.numel() > 20_000 or found.shape[0] != x.shape[0]:
        return None
    return found.detach() if bool(found.isfinite().all()) and 0 not in found.shape else None


def _module(init: Sequence[str], forward: Sequence[str], result: str) -> str:
    lines = ["class Net(nn.Module):", "    def __init__(self):", "        super().__init__()"]
    lines += [f"        {line}" for line in init if line]
    lines += ["", "    def forward(self, x):", "        y = x"]
    lines += [f"        {part}" for line in forward for part in line.split("\n")]
    return "\n".join([*lines, f"        return {result}", ""])


def program(seed: int) -> str:
    """Return the text of a program: ``Net``, ``loss``, ``batch``, ``setup``, ``before``."""
    draw = random.Random(seed)
    kind = draw.choice(["vector", "image", "image", "sequence"])
    rank = draw.choice([1, 2, 2, 3])
    c = draw.choice([3, 4, 5, 8, 16, 17])
    if kind == "vector":
        shape, layers = (c,), TABLES["vectors"]
    elif kind == "image":
        shape = (c, *(draw.choice([5, 6, 7, 8, 9, 12]) for _ in range(rank)))
        layers = TABLES["images"]
    else:
        shape, layers = (draw.choice([1, 3, 4, 7]), c), TABLES["sequences"]
    tokens = kind == "sequence" and draw.random() < 0.5
    init: list[str] = []
    forward: list[str] = []
    if tokens:
        padding = draw.choice(["", ", padding_idx=0", ", scale_grad_by_freq=False"])
        init, forward = [f"self.embed = nn.Embedding(11, {c}{padding})"], ["x = self.embed(x)"]
        x = torch.randint(0, 11, (4, shape[0]))
    else:
        x = torch.randn(4, *shape, dtype=torch.float64)
    wanted = draw.randint(2, 6)
    first = x
    now = _runs(init, forward, x) if tokens else x
    for number in range(40):
        if wanted == 0:
            break
        source = layers if draw.random() < 0.65 else TABLES["everywhere"]
        one, _, line = draw.choice(source).rpartition(" => ")
        channels = int(now.shape[1] if kind != "sequence" else now.shape[-1])
        names = {"m": f"l{number}", "c": channels, "r": rank,
                 "s": ", ".join(map(str, now.shape[1:]))}  # fmt: skip
        both = chosen(draw, f"{one}\0{line}", channels, **names).split("\0")
        found = _runs([*init, *both[0].split("; ")], [*forward, both[1].replace("; ", "\n")], first)
        if found is None or found.dim() != now.dim():
            continue
        init += both[0].split("; ")
        forward += [both[1].replace("; ", "\n")]
        now, wanted = found, wanted - 1
    rest = "x.flatten(1)" if draw.random() < 0.5 or kind == "vector" else "x.flatten(2).mean(2)"
    features = int(now.flatten(1).shape[1] if "(1)" in rest else now.shape[1])
    forward += [f"x = {rest}"]
    init += [f"self.last = nn.Linear({features}, 3)"]
    parts = [draw.choice(TABLES["losses"])]
    if draw.random() < 0.3:
        parts.append(draw.choice(TABLES["more"]))
    loss = chosen(draw, "\0".join(parts)).replace("\0", " + ")
    optimizer = draw.choice(TABLES["optimizers"])
    few = TABLES["groups"] if seed >= ROUGH and draw.random() < 0.4 else ()
    groups = draw.choice(few or [
        "module.parameters()", "module.parameters()", "[p for p in module.parameters()]",
        "[dict(params=[p], weight_decay=0.05 * (p.dim() > 1)) for p in module.parameters()]",
        "[dict(params=module.last.parameters(), lr=0.03), dict(params=[p for n, p in "
        "module.named_parameters() if not n.startswith('last')])]",
    ])  # fmt: skip
    optimizer = chosen(draw, optimizer, p=groups)
    freeze = draw.choice(["pass"] * 3 + ["list(module.parameters())[0].requires_grad_(False)"])
    batches = [draw.choice([4, 4, 3, 1, 6, 8]) for _ in range(3)]
    sizes = [batches[0]] * 6 + [batches[1]] * 3 + [batches[2]]
    if draw.random() < 0.5:
        sizes = [4] * 9 + [3]
    events: dict[int, str] = {}
    rough = seed >= ROUGH
    for _ in range(draw.choice([2, 3, 4] if rough else [0, 0, 1, 2, 3])):
        source = TABLES["rough"] if rough and draw.random() < 0.7 else TABLES["events"]
        events[draw.randint(1, 8)] = chosen(draw, draw.choice(source))
    options = draw.choice(["{}"] * 4 + ["dict(max_norm=0.5)", "dict(accumulate=2)"])
    if any(word in text for text in events.values() for word in _OF_GRADIENTS):
        options = options.replace("accumulate=2", "")
    made = f"torch.randint(0, 11, (size, {shape[0]}))" if tokens else (
        f"torch.randn(size, {', '.join(map(str, shape))}, dtype=dtype)"
    )  # fmt: skip
    before = [f"    if number == {n}:\n        {text}" for n, text in sorted(events.items())]
    return "\n".join([
        "import copy", "import io", "import torch", "from torch import nn, optim",
        "from torch.nn import functional as F", "", "",
        _module(init, forward, "self.last(x)"), "",
        "def loss(module, x, t, r):", "    x = module(x)", f"    return {loss}", "", "",
        "def setup(module):", f"    {freeze}", f"    optimizer = {optimizer}",
        f"    return optimizer, {draw.choice(TABLES['schedules'])}", "", "",
        "def batch(number, dtype):", f"    size = {sizes}[number]",
        f"    return {made}, torch.randint(0, 3, (size,)), torch.randn(size, 3, dtype=dtype)",
        "", "",
        "def before(number, module, optimizer):", *(before or ["    pass"]), "", "",
        f"options = {options}", "",
    ])  # fmt: skip


class Unfit(Exception):
    """PyTorch does not do these steps, or their numbers grow beyond sense."""


def eager(found: Any, module: Any, dtype: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """Return the optimizer after PyTorch's steps; and the loss and a copy of the state of each."""
    optimizer, schedule = found.setup(module)
    every, clip = found.options.get("accumulate", 1), found.options.get("max_norm")
    course = []
    for number in range(10):
        torch.manual_seed(number)  # (a step may draw numbers, too)
        found.before(number, module, optimizer)
        given = found.batch(number, dtype)
        loss = found.loss(module, *given)
        (loss / every).backward()
        if (number + 1) % every == 0:
            if clip is not None:
                nn.utils.clip_grad_norm_(
                    [p for group in optimizer.param_groups for p in group["params"]], clip
                )
            optimizer.step()
            optimizer.zero_grad()
        if schedule is not None:
            schedule.step()
        size = float(loss.detach().abs())
        if not size < 1e6:
            raise Unfit(f"loss {size}")
        course.append((loss.detach(), copy.deepcopy(module.state_dict())))
    return optimizer, course


def differences(found: Any, dtype: Any, rtol: float) -> str:
    """Return where compiled steps part from PyTorch's, nothing if they do not.

    Raises:
        Unfit: PyTorch fails.
    """
    import hagane

    torch.manual_seed(0)
    module = found.Net().to(dtype)
    other = copy.deepcopy(module)
    try:
        theirs, course = eager(found, other, dtype)
    except Exception as error:
        raise Unfit(str(error)) from error
    ours, schedule = found.setup(module)
    step = hagane.compile(found.loss, ours, **found.options)
    for number, (wanted, states) in enumerate(course):
        torch.manual_seed(number)
        found.before(number, module, ours)
        given = found.batch(number, dtype)
        loss = step(module, *given)
        if schedule is not None:
            schedule.step()
        text = apart(loss, wanted, rtol)
        if text:
            return f"step {number}: loss {text}"
        for name, value in module.state_dict().items():
            if text := apart(value, states[name], rtol):
                return f"step {number}: {name} {text}"
    one, two = ours.state_dict()["state"], theirs.state_dict()["state"]
    for key in two:
        for name, value in two[key].items():
            if value is None:
                continue
            if key not in one or one[key].get(name) is None:
                return f"state {name} of parameter {key} is missing"
            if text := apart(one[key][name], value, rtol):
                return f"state {name} of parameter {key} {text}"
    return ""


def apart(found: Any, wanted: Any, rtol: float) -> str:
    """Return how two tensors differ, nothing if they agree."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"is {found.dtype} {tuple(found.shape)}, not {wanted.dtype} {tuple(wanted.shape)}"
    found, wanted = found.detach().double(), wanted.detach().double()
    scale = float(wanted.abs().max()) if wanted.numel() else 0.0
    worst = float((found - wanted).abs().max()) if wanted.numel() else 0.0
    if worst <= rtol * max(scale, 1e-2):
        return ""
    return f"differs by {worst:.2g} of {scale:.2g}"


def main() -> None:
    """Try programs and print what differs."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    dtype = getattr(torch, sys.argv[3]) if len(sys.argv) > 3 else torch.float64
    rtol = 1e-8 if dtype == torch.float64 else 2e-3
    told: Callable[[str], None] = lambda text: print(text, flush=True)  # noqa: E731
    counts = {"agree": 0, "unfit": 0, "refused": 0, "wrong": 0}
    for seed in range(first, first + count):
        folder = Path(tempfile.mkdtemp(prefix="steps"))
        text = program(seed)
        try:
            text = differences(loaded(text, folder), dtype, rtol)
            counts["wrong" if text else "agree"] += 1
            if text:
                told(f"{seed} WRONG {text} {folder}")
        except Unfit as error:
            counts["unfit"] += 1
            told(f"{seed} unfit {str(error)[:100]!r}")
        except Exception as error:
            counts["refused"] += 1
            kind = type(error).__name__
            place = traceback.extract_tb(error.__traceback__)[-1]
            told(f"{seed} {kind} {str(error)[:300]!r} {place.filename}:{place.lineno} {folder}")
    told(str(counts))


if __name__ == "__main__":
    main()
