"""Steps of a log where something happens: ``max(action_values) drops by 0.5``, ``reward > 0``.

A condition is ``QUANTITY drops by NUMBER`` (or ``by more than NUMBER``), ``QUANTITY rises by
NUMBER``, ``QUANTITY changes``, or a comparison ``QUANTITY < NUMBER`` with ``<``, ``<=``, ``>``,
``>=``, ``=``, ``!=``. A quantity is a
column (``reward``, ``state_value``, ``action``, ``done``, ``action_values.0``) or ``max``, ``min``,
``mean``, ``sum``, ``spread`` (greatest minus second greatest) or ``entropy`` of a vector.
Conditions are joined by ``and``.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.tools.rl.errors import InvalidLog
from hagane.tools.rl.logs.records import Log

Steps = npt.NDArray[np.int64]

_OF = re.compile(r"(max|min|mean|sum|spread|entropy)\s*\(\s*([A-Za-z_]+)\s*\)")
_MOVES = re.compile(r"(.+?)\s+(drops|rises)\s+by\s+(more\s+than\s+)?(\S+)")
_CHANGES = re.compile(r"(.+?)\s+changes")
_COMPARES = re.compile(r"(.+?)\s*(<=|>=|!=|==|<|>|=)\s*(\S+)")
_EXAMPLES = (
    "'max(action_values) drops by 0.5', 'reward > 0', 'action changes', "
    "'entropy(action_probs) < 0.1'"
)


def find_steps(log: Log, condition: str) -> Steps:
    """Return the steps where a condition holds, in order.

    A drop or rise is the difference to the step before, within an episode.

    Raises:
        InvalidLog: the condition is malformed, or names a quantity that the log lacks.
    """
    parts = [part.strip() for part in re.split(r"\band\b", condition)]
    if not condition.strip() or len(condition) > 1000:
        raise InvalidLog(f"search: expected a condition such as {_EXAMPLES}, got nothing")
    holds = np.ones(log.steps, bool)
    for part in parts:
        holds &= _holds(log, part)
    return np.flatnonzero(holds)


def _holds(log: Log, part: str) -> Any:
    moves = _MOVES.fullmatch(part)
    if moves:
        by = _number(moves[4], part)
        difference = _difference(log, _quantity(log, moves[1]))
        if moves[2] == "drops":
            difference = -difference
        return difference > by if moves[3] else difference >= by
    changes = _CHANGES.fullmatch(part)
    if changes:
        difference = _difference(log, _quantity(log, changes[1]))
        return (difference != 0) & ~np.isnan(difference)
    compares = _COMPARES.fullmatch(part)
    if compares is None:
        raise InvalidLog(f"search: {part!r} is no condition; expected one such as {_EXAMPLES}")
    values = _quantity(log, compares[1])
    number = _number(compares[3], part)
    sign = compares[2]
    if sign in ("=", "=="):
        return np.isclose(values, number)
    if sign == "!=":
        return ~np.isclose(values, number) & ~np.isnan(values)
    return {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[sign](
        values, number
    )


def _difference(log: Log, values: Any) -> Any:
    difference = np.diff(values, prepend=np.nan)
    episode = log.columns.get("episode")
    if episode is not None:
        difference[np.diff(episode, prepend=np.nan) != 0] = np.nan
    return difference


def _quantity(log: Log, text: str) -> Any:
    text = text.strip()
    inner = _OF.fullmatch(text)
    if inner is None:
        if text == "done":
            done = log.columns.get("done")
            return np.zeros(log.steps) if done is None else np.nan_to_num(done.astype(np.float64))
        column = log.columns.get(text)
        if column is None:
            raise InvalidLog(
                f"search: the log has no {text!r}; it has {', '.join(log.columns) or 'nothing'}"
            )
        return column.astype(np.float64)
    names = [name for name in log.columns if name.rpartition(".")[0] == inner[2]]
    if not names:
        vectors = sorted({name.rpartition(".")[0] for name in log.columns if "." in name})
        raise InvalidLog(
            f"search: the log has no vector {inner[2]!r}; it has {', '.join(vectors) or 'none'}"
        )
    table = np.stack([log.columns[name] for name in names]).astype(np.float64)
    if inner[1] == "spread":
        ordered = np.sort(table, axis=0)
        return ordered[-1] - ordered[-2] if len(ordered) > 1 else ordered[-1] * 0
    if inner[1] == "entropy":
        safe = np.clip(table, 1e-30, None)
        return -(table * np.log(safe)).sum(axis=0)
    return getattr(np, inner[1])(table, axis=0)


def _number(text: str, part: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidLog(f"search: {part!r}: expected a number, got {text!r}") from None
