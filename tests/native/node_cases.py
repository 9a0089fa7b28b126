"""Models of one operator to begin with: ONNX's own cases, and those of the other domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx

from tests.conformance.cases import arrays, exclusion, node_cases
from tests.ops import contrib_cases, ml_cases
from tests.oracle import MICROSOFT, ML, node_model

# Words in the names of ONNX's cases that no mutation can compare: of random numbers, of texts and
# pictures (tests of their own), and casts to numbers whose overflow nobody defines.
_LEFT_OUT = (
    *("random", "bernoulli", "dropout", "multinomial", "training_", "image_decoder"),
    *("strnorm", "string", "regex", "tfidf", "cast_"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A model and one feed of it.

    Attributes:
        name: Of the case, unique.
        model: Of one operator, or of those that it stands for.
        feed: An array an input of the graph, in order.
        constant: The inputs that models have as constants.
    """

    name: str
    model: onnx.ModelProto
    feed: Mapping[str, np.ndarray]
    constant: frozenset[str] = frozenset()


@cache
def onnx_cases() -> Sequence[Case]:
    """Return ONNX's cases whose inputs are arrays of numbers."""
    found = []
    for case in node_cases():
        if exclusion(case.name) or case.model is None or any(w in case.name for w in _LEFT_OUT):
            continue
        names = [value.name for value in case.model.graph.input]
        inputs = arrays(case.data_sets[0][0])
        if len(inputs) == len(names) and all(_is_numbers(each) for each in inputs):
            found.append(Case(case.name, case.model, dict(zip(names, inputs, strict=True))))
    return tuple(found)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype != object


@cache
def domain_cases() -> Sequence[Case]:
    """Return cases of ``com.microsoft`` and ``ai.onnx.ml``."""
    found = []
    for name, (operator, inputs, outputs, settings) in contrib_cases.CASES.items():
        made = {k: v for k, v in settings.items() if k not in ("rtol", "atol", "steps")}
        made.pop("constants", None)
        model, feed = node_model(operator, inputs, outputs, **{"domain": MICROSOFT, **made})
        constant = frozenset(f"x{n}" for n in contrib_cases.CONSTANT.get(name, ()))
        found.append(Case(name, model, feed, constant))
    for name, (operator, arguments, outputs, attributes) in ml_cases.MODELS.items():
        model, feed = node_model(operator, arguments, outputs, domain=ML, **attributes)
        found.append(Case(name, model, feed))
    for name, (operator, features, attributes) in ml_cases.FEATURES.items():
        if operator != "ZipMap":  # which makes dicts
            model, feed = node_model(operator, features, domain=ML, **attributes)
            found.append(Case(name, model, feed))
    return tuple(found)
