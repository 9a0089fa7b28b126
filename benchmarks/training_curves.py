"""Losses of training beside PyTorch's, on the models of ``training_models.py``, in float32.

``python benchmarks/training_curves.py [--models NAME …] [--steps 200] [--batches 8] [--exact]``
prints a Markdown table. Weights, batches and their order are the same. Rounding grows from step to
step in any engine, so PyTorch trains a second time from weights that differ from the first by a
rounding error: the number of steps until its own losses are a thousandth apart tells how long
losses can be compared at all. Behind it: the largest difference of hagane and PyTorch until then,
the step at which they are a thousandth apart, and the means of the last losses of hagane, PyTorch,
and PyTorch from the rounded weights. With ``--exact`` PyTorch trains once more in float64, and two
columns tell how far hagane's and PyTorch's losses in float32 are from those, until the same step.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Sequence

import torch
from training_models import CASES, Case

# Losses that are further apart are different, by a share.
_APART = 1e-3
# Losses at the end whose mean is shown.
_LAST = 10


def losses(case: Case, module: torch.nn.Module, given: Sequence[tuple[torch.Tensor, ...]],
           *, compiled: bool, exact: bool = False) -> list[float]:  # fmt: skip
    """Train a copy of a module on some batches, and return the loss before each step."""
    from hagane.training.step import TorchStep

    module = copy.deepcopy(module)
    if exact:
        module = module.double()
        given = [tuple(x.double() if x.is_floating_point() else x for x in row) for row in given]
    optimizer = case.optimizer(module.parameters())
    if compiled:
        step = TorchStep(case.loss, optimizer)
        return [float(step(module, *batch)) for batch in given]
    found = []
    for batch in given:
        optimizer.zero_grad()
        loss = case.loss(module, *batch)
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


def rounded(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy whose parameters differ by at most a rounding error each."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in other.parameters():
            signs = torch.randint(0, 2, parameter.shape) * 2.0 - 1
            parameter.mul_(1 + signs * torch.finfo(parameter.dtype).eps)
    return other


def differences(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the share by which losses differ, step by step."""
    return [abs(a - b) / abs(b) for a, b in zip(one, other, strict=True)]


def first(shares: Sequence[float], of: Callable[[float], bool]) -> int:
    """Return the first step of which something holds; the number of steps if of none."""
    return next((i for i, share in enumerate(shares) if of(share)), len(shares))


def row(name: str, steps: int, batches: int, *, exact: bool) -> str:
    """Return a line of the table."""
    case = CASES[name]
    torch.manual_seed(0)
    module, data = case.make(), [case.batch() for _ in range(batches)]
    given = [data[i % batches] for i in range(steps)]
    theirs = losses(case, module, given, compiled=False)
    other = losses(case, rounded(module), given, compiled=False)
    again = differences(other, theirs)
    own = losses(case, module, given, compiled=True)
    apart = differences(own, theirs)
    comparable = first(again, lambda share: not share <= _APART)
    ends = [sum(values[-_LAST:]) / len(values[-_LAST:]) for values in (own, theirs, other)]
    line = (
        f"| {name} | {steps} | {comparable} | {max(apart[:comparable], default=0.0):.0e} | "
        f"{first(apart, lambda share: not share <= _APART)} | "
        f"{' / '.join(f'{end:.3g}' for end in ends)} |"
    )
    if exact:
        true = losses(case, module, given, compiled=False, exact=True)
        for found in (own, theirs):
            line += f" {max(differences(found, true)[:comparable], default=0.0):.0e} |"
    return line


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--exact", action="store_true", help="compare with float64")
    given = parser.parse_args()
    more = " hagane and float64 until then | PyTorch and float64 until then |" * given.exact
    print(
        "| model | steps | PyTorch's own losses stay within 0.001 for | hagane and PyTorch until "
        "then | hagane and PyTorch stay within 0.001 for | last losses (hagane / PyTorch / "
        "rounded) |" + more
    )
    print("|---|---|---|---|---|---|" + "---|---|" * given.exact, flush=True)
    for name in given.models:
        print(row(name, given.steps, given.batches, exact=given.exact), flush=True)


if __name__ == "__main__":
    main()
