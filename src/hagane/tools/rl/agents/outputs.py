"""The keys by which an agent shows its estimates, and their form in a log.

========================  =====================================================================
key                       value
========================  =====================================================================
``action_probs``          probabilities of discrete actions, ``(actions,)``
``action_logits``         unnormalised logarithms of them, ``(actions,)``
``state_value``           the critic's value of the state, a number
``action_values``         Q of each discrete action, ``(actions,)``
``z_values``              atoms of a value distribution, ``(atoms,)``
``action_value_dist``     probability of each atom and action, ``(atoms, actions)``
``action_quantiles``      quantiles of each action's value, ``(quantiles, actions)``
``action_means``          mean of a Gaussian policy, ``(size of action,)``
``action_vars``           its variance, ``(size of action,)``
``action_deterministic``  a continuous action without noise, ``(size of action,)``
``action_value``          Q of the one action that was taken, a number
``quadratic_value``       ``{"mean": (n,), "matrix": (n, n), "value": v}`` of a quadratic Q
``mellowmax_beta``        the inverse temperature of a mellowmax policy, a number
``state_norm``            length of a recurrent state, a number
========================  =====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hagane.tools.rl.errors import AgentFault

NUMBERS = ("state_value", "action_value", "mellowmax_beta", "state_norm")
VECTORS = (
    "action_probs",
    "action_logits",
    "action_values",
    "z_values",
    "action_means",
    "action_vars",
    "action_deterministic",
)
MATRICES = ("action_value_dist", "action_quantiles")
KEYS = (*NUMBERS, *VECTORS, *MATRICES, "quadratic_value")


def plain(value: Any) -> Any:
    """Return a value as JSON has it: arrays as lists, numbers of NumPy as numbers, NaN as null."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        return str(value)
    return plain(array.tolist())


def checked(shown: object, agent: str) -> dict[str, Any]:
    """Return the record of an agent's outputs, ready for a log.

    Args:
        shown: the result of ``explain``.
        agent: its name, for messages.

    Raises:
        AgentFault: a key has a value of another rank, or not of numbers.
    """
    if not isinstance(shown, Mapping):
        raise AgentFault(
            f"{agent}.explain: expected a dict with keys such as 'action_probs', "
            f"got {type(shown).__name__}"
        )
    record: dict[str, Any] = {}
    for key, value in shown.items():
        if value is None:
            continue
        try:
            record[str(key)] = _shaped(str(key), value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise AgentFault(f"{agent}.explain: {key!r}: {error}") from None
    _fit(record, agent)
    return record


def _shaped(key: str, value: Any) -> Any:
    if key not in NUMBERS and key not in VECTORS and key not in MATRICES:
        return plain(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    array = np.asarray(value, dtype=np.float64)
    if key in NUMBERS:
        if array.size != 1:
            raise ValueError(f"expected one number, got shape {list(array.shape)}")
        return plain(float(array.reshape(())))
    rank = 1 if key in VECTORS else 2
    while array.ndim > rank and array.shape[0] == 1:
        array = array[0]
    if array.ndim != rank:
        raise ValueError(f"expected {rank} dimension(s), got shape {list(array.shape)}")
    return plain(array)


def _fit(record: Mapping[str, Any], agent: str) -> None:
    if "action_value_dist" in record and "z_values" in record:
        rows, atoms = len(record["action_value_dist"]), len(record["z_values"])
        if rows != atoms:
            raise AgentFault(
                f"{agent}.explain: 'action_value_dist' has {rows} rows and 'z_values' {atoms} "
                "atoms; expected (atoms, actions)"
            )
    if "action_means" in record and "action_vars" in record:
        means, variances = len(record["action_means"]), len(record["action_vars"])
        if means != variances:
            raise AgentFault(
                f"{agent}.explain: 'action_means' has {means} numbers and 'action_vars' "
                f"{variances}; expected one each for every part of the action"
            )


def kinds(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an agent's profile that follow from one record of its outputs."""
    distribution = None
    if "mellowmax_beta" in record:
        distribution = "MellowmaxDistribution"
    elif "action_probs" in record or "action_logits" in record:
        distribution = "SoftmaxDistribution"
    elif "action_means" in record:
        distribution = "GaussianDistribution"
    elif "action_deterministic" in record:
        distribution = "ContinuousDeterministicDistribution"
    values = None
    if "action_value_dist" in record or "action_quantiles" in record:
        values = "DistributionalDiscreteActionValue"
    elif "action_values" in record:
        values = "DiscreteActionValue"
    elif "quadratic_value" in record:
        values = "QuadraticActionValue"
    elif "action_value" in record:
        values = "SingleActionValue"
    return {
        "state_value_returned": "state_value" in record,
        "distribution_type": distribution,
        "action_value_type": values,
    }
