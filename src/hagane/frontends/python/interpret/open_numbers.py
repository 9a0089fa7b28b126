"""Numbers from outside of the program, such as a file's, where a library takes nothing else.

What a file holds has no type. Where it can only be a number, it is one of which nothing is known:
what is computed with it is checked for all numbers, which the report tells as assumed.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.values.texts import Begun
from hagane.frontends.python.values.values import (
    Outside,
    Real,
    Truth,
    Unknown,
    Value,
    is_plain,
)

# Functions and methods that take nothing but sizes, by position.
_OF_SIZES = frozenset(
    ("zeros", "ones", "empty", "rand", "randn", "eye", "arange", "randperm", "view", "reshape",
     "expand", "repeat", "new_zeros", "new_ones", "new_empty")
)  # fmt: skip
# Parameters of layers and functions, and what they are.
_WHOLE = frozenset(
    ("num_embeddings", "embedding_dim", "in_features", "out_features", "in_channels",
     "out_channels", "num_features", "num_channels", "input_size", "hidden_size", "num_layers",
     "d_model", "nhead", "embed_dim", "num_heads", "dim_feedforward", "normalized_shape",
     "kernel_size", "stride", "padding", "num_classes", "size", "shape", "low", "high", "n", "k",
     "in1_features", "in2_features", "num_groups", "num_encoder_layers", "num_decoder_layers",
     "proj_size", "kdim", "vdim", "padding_idx")
)  # fmt: skip
_TRUTH = frozenset(("bias", "affine"))  # of no effect on types
_FLOAT = frozenset(("p", "dropout", "eps", "momentum", "negative_slope", "lr", "weight_decay"))
_KINDS = ((_WHOLE, int), (_TRUTH, bool), (_FLOAT, float))
_DEVICES = frozenset(("cpu", "cuda", "xpu", "mps"))  # a number behind them says which
_COUNTING = frozenset(("index", "count", "find", "rfind"))  # methods of texts and lists
_NAMED = {"int": int, "float": float, "bool": bool}


class OpenNumbers(Core):
    """Takes values from outside for numbers, where nothing else fits."""

    tables: Tables

    def as_numbers(
        self, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> tuple[Sequence[Value], Mapping[str, Value]]:
        """Return the arguments of a call of a library, with numbers for values from outside."""
        if self.emit.builds or not any(map(_holds, (*arguments, *keywords.values()))):
            return arguments, keywords
        method = name.startswith("torch.Tensor.")
        sizes = name.rpartition(".")[2] in _OF_SIZES and name.startswith(("torch.", "numpy."))
        names = self.tables.parameters(name)
        given = [
            self._as_number(value, "size" if sizes and (place or not method) else told)
            for place, (value, told) in enumerate(
                zip(arguments, [*names, *[""] * len(arguments)], strict=False)
            )
        ]
        return given, {told: self._as_number(value, told) for told, value in keywords.items()}

    def _as_number(self, value: Value, name: str) -> Value:
        """Return the value of a parameter: a number for a value from outside, if it takes one."""
        if type(value) in (list, tuple) and name in _WHOLE:
            return type(value)(self._as_number(item, name) for item in value)
        if isinstance(value, Begun) and value.before.rstrip(":") in _DEVICES:
            return value.before.rstrip(":")
        kind = next((kind for names, kind in _KINDS if name in names), None)
        return self.number_from(value, kind) if kind and type(value) is Outside else value

    def number_from(self, value: Outside, kind: type) -> Value:
        """Return a value from outside as a number; the same value is the same number again."""
        told = {int: "a whole number", float: "a number", bool: "a truth value"}[kind]
        self.assume(f"{value.reason} is {told} here")
        if kind is float:
            return Real()
        if kind is bool:
            return True
        known = self.from_outside.numbers
        if value not in known:
            known[value] = self.emit.fresh("outside")
            self.knowledge.lowest[str(known[value])] = 1
        return known[value]

    def beside_unknown(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return an operator of which an operand is not known."""
        lost, other = (left, right) if isinstance(left, Unknown) else (right, left)
        if isinstance(lost, Outside) and (is_plain(other) or isinstance(other, Outside)):
            return self.part_from_outside(lost, (kind, left, right))
        return lost

    def part_from_outside(self, value: Outside, key: Value) -> Value:
        """Return an item or an attribute of a value from outside: the same one each time."""
        counts = isinstance(key, str) and key in _COUNTING
        if self.emit.builds or (type(value) is not Outside and not counts):
            return value
        known = self.from_outside
        part = known.parts.setdefault((value, key), Outside(value.reason, value.told))
        if counts:
            known.counting.add(part)
        return part

    def as_annotated(self, annotation: ast.expr | None, value: Value) -> Value:
        """Return a value from outside as the number that an annotation says it is."""
        kind: Any = _NAMED.get(annotation.id) if isinstance(annotation, ast.Name) else None
        if kind is None or not isinstance(value, Outside) or self.emit.builds:
            return value
        return Truth(self.unknown_truth()) if kind is bool else self.number_from(value, kind)


def _holds(value: Value) -> bool:
    """Whether a value is from outside, or holds one that is."""
    if type(value) in (list, tuple):
        return any(map(_holds, value))
    return type(value) is Outside or isinstance(value, Begun)


__all__ = ["OpenNumbers"]
