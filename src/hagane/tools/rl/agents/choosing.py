"""From outputs to an action: the greatest value, the likeliest action, the mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hagane.tools.rl.errors import AgentFault

_DISCRETE = ("action_values", "action_probs", "action_logits")
_CONTINUOUS = ("action_deterministic", "action_means")


def chosen(outputs: Mapping[str, Any], name: str, sample: bool = False) -> Any:
    """Return the action for outputs of one observation.

    Args:
        outputs: without a batch.
        name: of the agent, for messages.
        sample: whether policies are drawn from; else their likeliest action is taken.

    Raises:
        AgentFault: no output says which action to take.
    """
    if sample and "action_probs" in outputs:
        chances = np.asarray(outputs["action_probs"], np.float64)
        return int(np.random.choice(len(chances), p=chances / chances.sum()))
    if sample and "action_means" in outputs and "action_vars" in outputs:
        spread = np.sqrt(np.asarray(outputs["action_vars"]))
        return np.asarray(
            outputs["action_means"] + spread * np.random.standard_normal(spread.shape)
        )
    for key in _DISCRETE:
        if key in outputs:
            return int(np.argmax(outputs[key]))
    for key in _CONTINUOUS:
        if key in outputs:
            return np.asarray(outputs[key], np.float32)
    raise AgentFault(
        f"{name}: no output says which action to take; expected one of "
        f"{', '.join((*_DISCRETE, *_CONTINUOUS))}, got {', '.join(outputs) or 'none'}"
    )
