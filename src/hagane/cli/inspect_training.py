"""``hagane inspect FILE.py:make --training``: the plan of a compiled training step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hagane.errors import InvalidArgument

if TYPE_CHECKING:
    from hagane.training.step.memory.planned import StepPlan

# So many stages and values are shown; ``--json`` has all.
_MOST_STAGES = 24
_MOST_VALUES = 12


def planned(target: str, budget: str | None) -> StepPlan:
    """Return the plan of the step of a file, ``FILE.py:make``.

    Args:
        target: A function without arguments that returns a trainer, or a compiled step and the
            arguments of a call.
        budget: Bytes that a trainer's step may take, as text.

    Raises:
        InvalidArgument: It returns neither; or there is a budget, and the step was compiled by the
            file.
    """
    from hagane.cli.train import call, load

    command = "hagane inspect --training"
    return step_of(call(load(target, command), target, command), target, budget)


def step_of(made: Any, target: str, budget: str | None) -> StepPlan:
    """Return the plan of a trainer's next step, or of a step and its arguments."""
    from hagane.training import Trainer
    from hagane.training.step.links.step import LinkStep

    named: dict[str, Any] = {}
    if isinstance(made, Trainer):
        updater: Any = made.updater
        step = updater.loss_func or updater.get_optimizer("main").target
        if not hasattr(step, "plan"):
            step = LinkStep(step, updater.get_optimizer("main"), memory_budget=budget)
            budget = None
        batch = updater.converter(updater.get_iterator("main").next(), updater.input_device)
        if isinstance(batch, dict):
            named, batch = batch, ()
        arguments = batch if isinstance(batch, tuple) else (batch,)
    elif isinstance(made, tuple) and made and hasattr(made[0], "plan"):
        step, *rest = made
        arguments = tuple(rest)
    else:
        raise InvalidArgument(
            f"hagane inspect --training: expected a hagane.training.Trainer from {target}, or a "
            "compiled step and the arguments of a call as a tuple, got "
            f"{type(made).__module__}.{type(made).__qualname__}"
        )
    if named:
        raise InvalidArgument(
            f"hagane inspect --training: batches of {target} are dicts ({', '.join(named)}), which "
            "compiled steps don't take; let the converter return a tuple"
        )
    if budget is not None:
        raise InvalidArgument(
            f"hagane inspect --training: {target} compiles its step itself: give the budget there, "
            "as in hagane.compile(loss, optimizer, memory_budget=...)"
        )
    plan: StepPlan = step.plan(*arguments)
    return plan


def lines_of(plan: StepPlan) -> Iterator[str]:
    """Yield the plan as lines of text."""
    memory = plan.memory
    if plan.sizes:
        yield "sizes  " + ", ".join(f"{name} = {size}" for name, size in plan.sizes.items())
    parts = (
        ("run", memory.run), ("results", memory.results), ("new states", memory.states),
        ("program", memory.program),
    )  # fmt: skip
    yield f"predicted peak  {_bytes(memory.predicted)}: " + ", ".join(
        f"{name} {_bytes(size)}" for name, size in parts
    )
    if plan.budget is not None:
        whole = _bytes(memory.predicted + memory.saved)
        yield f"budget  {_bytes(plan.budget)}; {whole} if nothing were computed again"
    again = ", ".join(memory.again[:_MOST_VALUES])
    more = len(memory.again) - _MOST_VALUES
    yield (
        f"computed again  {len(memory.again)} nodes"
        + (f": {again}" if again else "")
        + (f" and {more} more" if more > 0 else "")
    )
    times = ", ".join(f"{name} {_time(s)}" for name, s in plan.seconds.items())
    yield f"time, estimated  {times}"
    yield f"way forward  {len(plan.stages)} stages"
    yield f"  {'time':>9} {'crosses':>9} {'kept':>9} {'again':>7}  ends with"
    for stage in plan.stages[:_MOST_STAGES]:
        again = f"{stage.again}/{stage.nodes}"
        yield (
            f"  {_time(stage.seconds):>9} {_bytes(stage.output):>9} {_bytes(stage.kept):>9} "
            f"{again:>7}  {stage.last}"
        )
    if len(plan.stages) > _MOST_STAGES:
        yield f"  and {len(plan.stages) - _MOST_STAGES} more"
    yield f"kept for the way back  {len(plan.kept)} values, {_bytes(sum(plan.kept.values()))}"
    for name, size in list(plan.kept.items())[:_MOST_VALUES]:
        yield f"  {_bytes(size):>9}  {name}"
    if len(plan.kept) > _MOST_VALUES:
        yield f"  and {len(plan.kept) - _MOST_VALUES} more"


def _bytes(size: float) -> str:
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:.0f} B"


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"
