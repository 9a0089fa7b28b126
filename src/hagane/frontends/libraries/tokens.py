"""Programs' arguments by tyro and fire, and texts as tokens by tiktoken: known by name alone."""

from __future__ import annotations

from hagane.frontends.libraries.table import Table, View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Bound, Function
from hagane.frontends.python.values.values import Many, Value

TIKTOKEN = Table("tiktoken", "tiktoken.Tensor")
TYRO = Table("tyro", "tyro.Tensor")
FIRE = Table("fire", "fire.Tensor")

_SIZES = {"gpt2": 50_257, "r50k_base": 50_257, "p50k_base": 50_281, "p50k_edit": 50_284,
          "cl100k_base": 100_277, "o200k_base": 200_019, "o200k_harmony": 201_088}  # fmt: skip
_ENDS = {"gpt2": 50_256, "r50k_base": 50_256, "p50k_base": 50_256, "p50k_edit": 50_256,
         "cl100k_base": 100_257, "o200k_base": 199_999, "o200k_harmony": 199_999}  # fmt: skip


def _tokens(t: Core) -> Value:
    return t.new_list(Many(t.emit.fresh("token"), t.emit.fresh("tokens")))


@TIKTOKEN.layer("Encoding", "core.Encoding")
class Encoding:
    """A vocabulary."""

    @staticmethod
    def init(t: Core, name: Value = None, **_: Value) -> dict[str, Value]:
        """Return the attributes."""
        known = isinstance(name, str) and name in _SIZES
        size = _SIZES[name] if known else t.emit.fresh("vocabulary")
        end = _ENDS[name] if known else t.emit.fresh("token")
        return {"name": name, "n_vocab": size, "max_token_value": size - 1, "eot_token": end}

    @staticmethod
    def encode(t: Core, self: View, text: Value, **_: Value) -> Value:
        """Return the tokens of a text."""
        return _tokens(t)

    @staticmethod
    def encode_single_token(t: Core, self: View, text_or_bytes: Value) -> Value:
        """Return a token."""
        return t.emit.fresh("token")

    @staticmethod
    def encode_batch(t: Core, self: View, text: Value, **_: Value) -> Value:
        """Return the tokens of several texts."""
        found = text if isinstance(text, Many) else t.sequence(t.wrap(text))
        if isinstance(found, Many):
            return t.new_list(Many(_tokens(t), found.length))
        return t.new_list([_tokens(t) for _ in found])

    @staticmethod
    def decode(t: Core, self: View, tokens: Value, **_: Value) -> Value:
        """Return the text of tokens."""
        return t.outside("the text of tokens")

    encode_ordinary, encode_ordinary_batch = encode, encode_batch
    decode_bytes = decode_single_token_bytes = decode_batch = decode


@TIKTOKEN.function("get_encoding")
def get_encoding(t: Core, encoding_name: Value) -> Value:
    """Return a vocabulary by its name."""
    return t.call_library("tiktoken.Encoding", [encoding_name])


@TIKTOKEN.function("encoding_for_model")
def encoding_for_model(t: Core, model_name: Value) -> Value:
    """Return the vocabulary of a model."""
    return t.call_library("tiktoken.Encoding", ["gpt2" if model_name == "gpt2" else None])


@TYRO.function("cli")
def cli(t: Core, f: Value, *, default: Value = None, config: Value = None, **_: Value) -> Value:
    """Return what a command makes of its arguments: all have their defaults."""
    if default is not None:
        return default
    try:
        return t.call(f, [], {})
    except CheckError:  # one has none
        return t.outside("the arguments of the command line")


@FIRE.function("Fire")
def fire(t: Core, component: Value = None, command: Value = None, **_: Value) -> Value:
    """Return what a command gives: arguments have their defaults, of several each is followed."""
    commands = component if isinstance(component, dict) else t.mapping(component)
    if component is None or command is not None:
        return t.lost("a command that fire chooses by its name")
    for one in [component] if commands is None else commands.values():
        if not isinstance(one, Function | Bound):
            return t.lost("a command of fire that is no function")
        t.call(one, _left_open(t, one), {})
    return t.outside("what a command gives")


def _left_open(t: Core, command: Function | Bound) -> list[Value]:
    """Return values for the arguments that have no defaults."""
    function = command.function if isinstance(command, Bound) else command
    if not isinstance(function, Function):
        return []
    formal = function.node.args
    names = [one.arg for one in (*formal.posonlyargs, *formal.args)]
    names = names[isinstance(command, Bound) : len(names) - len(function.defaults)]
    return [t.outside(f"the argument '{name}' of the command line") for name in names]


__all__ = ["FIRE", "TIKTOKEN", "TYRO"]
