"""Whether an explanation may be believed: three checks that stand beside every one.

- *Randomised weights* (Adebayo et al. 2018): a map that stays the same when the network's weights
  are drawn anew does not depend on learnt weights.
- *Intervention* (Atrey et al. 2020): where the map says that something matters, changing the state
  there has to change the output. Parts of the observation are exchanged for those of other states
  of the rollout, and the change is ranked against the map.
- *Deletion and insertion* (Petsiuk et al. 2018): taking away the parts that the map ranks first has
  to change the output sooner than taking away parts in random order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.tools.rl.explain.subject import Floats, Subject, Target

SAME = 0.5
FEWEST = 6
AGREES = 0.2
_SIDE = 7


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one check.

    Attributes:
        name: of the check.
        value: the measurement.
        holds: whether it passes; None if it could not be made.
        words: one sentence.
    """

    name: str
    value: float | None
    holds: bool | None
    words: str

    def to_json(self) -> dict[str, Any]:
        """Return it for the page."""
        return {"name": self.name, "value": self.value, "holds": self.holds, "words": self.words}


def rank_correlation(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return Spearman's ρ of two arrays, 0 where one of them is constant."""
    x, y = _ranks(np.ravel(a)), _ranks(np.ravel(b))
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / size if size > 0 else 0.0


def correlation_where_any(a: Floats, b: Floats) -> float:
    """Return Spearman's ρ over the places where either map is not zero.

    Methods that multiply by the observation give zero wherever it is empty, for any weights;
    with those places every two maps of a sparse picture look alike.
    """
    held = (a != 0) | (b != 0)
    return rank_correlation(a[held], b[held]) if int(held.sum()) >= FEWEST else 0.0


def regions(subject: Subject) -> Floats:
    """Return masks of an observation's parts: squares of a picture, numbers of a list."""
    base = subject.base
    if not subject.picture:
        return np.eye(base.size, dtype=np.float32).reshape(base.size, *base.shape)
    height, width = subject.plane
    rows, columns = min(_SIDE, height), min(_SIDE, width)
    row = np.arange(height) * rows // height
    column = np.arange(width) * columns // width
    cells = row[:, None] * columns + column[None]
    found: Floats = (np.arange(rows * columns)[:, None, None] == cells[None]).astype(np.float32)
    return found


def masses(parts: Floats, found: Floats) -> npt.NDArray[np.float64]:
    """Return the mean absolute attribution of each part."""
    flat = parts.reshape(len(parts), -1)
    weight = flat.sum(axis=1)
    return np.asarray(flat @ np.abs(found).ravel() / np.maximum(weight, 1), np.float64)


def randomised(
    subject: Subject,
    explain: Callable[[Subject], Floats],
    found: Floats,
    seed: int = 0,
) -> list[Verdict]:
    """Check a map against those of the same network with random weights.

    Args:
        subject: the subject of the explanation.
        explain: the method.
        found: its map.
        seed: of the weights.
    """
    agent = subject.agent
    if not agent.can("randomised"):
        words = "not checked: the agent has no randomised(seed, layers)"
        return [Verdict("randomised weights", None, None, words)]
    if np.unique(found).size < FEWEST:
        words = f"not checked: ranks of {np.unique(found).size} different numbers say too little"
        return [Verdict("randomised weights", None, None, words)]
    verdicts = []
    for layers, words in ((1, "last layer"), (None, "all layers")):
        other = type(agent)(agent.agent.randomised(seed, layers), agent.name)
        state = subject.state if layers == 1 or not agent.recurrent else None
        changed = Subject(other, subject.observation, state, subject.mean, subject.history)
        same = abs(correlation_where_any(np.abs(found), np.abs(explain(changed))))
        verdicts.append(
            Verdict(
                f"randomised weights, {words}",
                round(same, 4),
                same < SAME if layers is None else None,
                f"rank correlation {same:.2f} with the map of random weights in {words}"
                + ("" if layers == 1 else f"; expected below {SAME}"),
            )
        )
    return verdicts


def intervention(
    subject: Subject, target: Target, found: Floats, others: Sequence[Floats]
) -> Verdict:
    """Check whether changes of the state where the map is strong change the output most.

    Args:
        subject: the subject of the explanation.
        target: the output.
        found: the map.
        others: observations of other states.
    """
    parts = regions(subject)
    if not others or len(parts) < 4:
        return Verdict("intervention", None, None, "not checked: too few states or parts")
    spread = subject.spread(parts) if subject.picture else parts
    base = subject.base
    effect = np.zeros(len(parts))
    before = target.parts(subject.outputs(base[None]))
    for other in others:
        batch = np.where(spread > 0, other[None], base[None]).astype(np.float32)
        after = target.parts(subject.outputs(batch))
        effect += np.sqrt(((after - before) ** 2).sum(axis=1))
    agreement = rank_correlation(masses(parts, found), effect)
    return Verdict(
        "intervention",
        round(agreement, 4),
        agreement > AGREES,
        f"rank correlation {agreement:.2f} with what exchanging each part for that of "
        f"{len(others)} other states does; expected above {AGREES}",
    )


@dataclass(frozen=True, slots=True)
class Curves:
    """The output while parts are taken away, or put back, in an order.

    Attributes:
        deletion: distance from the output at the observation, parts taken away most important
            first; from 0 to 1 of the distance at the end.
        insertion: nearness to the output at the observation, parts put back likewise.
        random_deletion: the same in random orders, their mean.
        random_insertion: the same.
    """

    deletion: list[float]
    insertion: list[float]
    random_deletion: list[float]
    random_insertion: list[float]

    def areas(self) -> tuple[float, float]:
        """Return by how much both curves lie above those of random order, as areas."""
        return (
            float(np.mean(self.deletion) - np.mean(self.random_deletion)),
            float(np.mean(self.insertion) - np.mean(self.random_insertion)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return them for the page."""
        names = ("deletion", "insertion", "random_deletion", "random_insertion")
        return {name: [round(value, 4) for value in getattr(self, name)] for name in names}


def faithfulness(subject: Subject, target: Target, found: Floats, seed: int = 0) -> Curves:
    """Return deletion and insertion curves of a map and of random orders.

    The distance of outputs is Euclidean, as a share of that between the observation and the mean.
    """
    parts = regions(subject)
    generator = np.random.default_rng(seed)
    orders = [np.argsort(-masses(parts, found), kind="stable")]
    orders += [generator.permutation(len(parts)) for _ in range(5)]
    curves = [_curves(subject, target, parts, order) for order in orders]
    chance = np.mean(np.asarray(curves[1:]), axis=0)
    return Curves(*map(list, curves[0]), *map(list, chance.tolist()))


def faithful(curves: Curves) -> Verdict:
    """Judge curves: important parts have to be taken away sooner than at random."""
    deletion, insertion = curves.areas()
    return Verdict(
        "deletion and insertion",
        round((deletion + insertion) / 2, 4),
        deletion + insertion > 0,
        f"deletion {deletion:+.2f} and insertion {insertion:+.2f} against random order; "
        "expected above 0 together",
    )


def _curves(
    subject: Subject, target: Target, parts: Floats, order: npt.NDArray[np.int64]
) -> tuple[list[float], list[float]]:
    base = subject.base
    mean = subject.mean if subject.mean is not None else np.zeros_like(base)
    steps = np.unique(np.linspace(0, len(parts), min(len(parts), 20) + 1).astype(int))
    gone = np.stack([parts[order[:step]].sum(axis=0) for step in steps])
    gone = subject.spread(gone) if subject.picture else gone
    deleted = np.where(gone > 0, mean[None], base[None])
    inserted = np.where(gone > 0, base[None], mean[None])
    outputs = target.parts(subject.outputs(np.concatenate((deleted, inserted)).astype(np.float32)))
    count = len(steps)
    here, away = outputs[0], outputs[count - 1]
    whole = float(np.linalg.norm(here - away)) or 1.0
    distance = np.linalg.norm(outputs - here, axis=1) / whole
    return distance[:count].tolist(), (1 - distance[count:]).tolist()


def _ranks(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middles = ends - (counts + 1) / 2
    return np.asarray(middles[inverse], np.float64)
