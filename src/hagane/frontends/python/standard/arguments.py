"""``argparse``: the arguments of a script as run without any; those without a default are open."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Class, Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    ListRef,
    Real,
    Tensor,
    Value,
    is_plain,
)

_NUMBERS: dict[Any, str] = {int: "int", float: "float", bool: "bool"}


class Parser(argparse.ArgumentParser):
    """A parser with the defaults that only the program knows: objects that are no plain values."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.own_defaults: dict[str, Value] = {}
        self.own_types: dict[str, Value] = {}

    def error(self, message: str) -> Any:
        """Raise the exception that ends the script."""
        raise CheckError("value", f"argparse: {message}")


def _real(value: Value) -> Any:
    """Return the parser, or group of one, that a value stands for."""
    return value.object if isinstance(value, Host) else getattr(value, "host", None)


class Arguments(Core):
    """Calls ``argparse``."""

    def _call_ArgumentParser(self, *arguments: Value, **settings: Value) -> Value:
        known = {k: v for k, v in settings.items() if is_plain(v) and k in ("prefix_chars",)}
        return self._made_parser(Parser, settings, known)

    def _made_parser(
        self, make: Callable[..., Parser], settings: Mapping[str, Value], known: dict[str, Any]
    ) -> Value:
        given = self.sequence(settings.get("parents", ()))
        if not isinstance(given, list):
            return self.lost("a parser of arguments with parents that are not known")
        parents = list(map(self._parser, given))
        made = make(add_help=False, conflict_handler="resolve", parents=parents, **known)
        for parent in parents:
            made.own_defaults.update(parent.own_defaults)
            made.own_types.update(parent.own_types)
        return Host(made)

    def _call_Namespace(self, **values: Value) -> Value:
        assert self.frame is not None
        cls = Class(self.heap.new({}), "Namespace", (), self.frame.module)
        return Instance(self.heap.new(dict(values)), cls)

    def _call_add_subparsers(self, owner: Value, **settings: Value) -> Value:
        dest = settings.get("dest", argparse.SUPPRESS)
        if not isinstance(dest, str):
            return self.lost("commands of the command line under a name that is not known")
        return Host(_real(owner).add_subparsers(dest=dest, parser_class=Parser))

    def _call_add_parser(self, owner: Value, name: Value, **settings: Value) -> Value:
        if not isinstance(name, str):
            return self.lost("a command of the command line whose name is not known")
        return self._made_parser(_real(owner).add_parser, settings, {"name": name})

    def _parser(self, value: Value) -> Parser:
        found = _real(value)
        while not isinstance(found, Parser):
            found = getattr(found, "_container", None)
            if found is None:
                raise CheckError("type", f"{self.show(value)} is no parser of arguments")
        return found

    def _call_add_argument(self, owner: Value, *names: Value, **settings: Value) -> Value:
        if not all(isinstance(name, str) for name in names):
            return self.lost("an argument of the command line whose name is not known")
        parser, kept = self._parser(owner), {}
        kind, default = settings.get("type", MISSING), settings.get("default", MISSING)
        for key in ("action", "nargs", "const", "required", "dest", "choices"):
            value = settings.get(key, MISSING)
            plain = self.real_of(value) if value is not MISSING else MISSING
            if plain is not MISSING and key != "choices":
                kept[key] = plain
        real = self.real_of(kind) if kind is not MISSING else MISSING
        if real in (int, float, str):
            kept["type"] = real
        plain = self.real_of(default) if default is not MISSING else MISSING
        if plain is not MISSING and is_plain(plain):
            kept["default"] = plain
        made = _real(owner).add_argument(*names, **kept)
        made.hagane_required = bool(made.required)
        made.required = False
        if kind is not MISSING and "type" not in kept:
            parser.own_types[made.dest] = kind
        if default is not MISSING and "default" not in kept:
            parser.own_defaults[made.dest] = default
        return Host(made)

    def _call_add_argument_group(self, owner: Value, *_: Value, **__: Value) -> Value:
        return Host(_real(owner).add_argument_group())

    def _call_add_mutually_exclusive_group(self, owner: Value, **_: Value) -> Value:
        return Host(_real(owner).add_mutually_exclusive_group())

    def _call_set_defaults(self, owner: Value, **defaults: Value) -> Value:
        self._parser(owner).own_defaults.update(defaults)
        return None

    def _call_get_default(self, owner: Value, name: Value) -> Value:
        return self._parser(owner).get_default(name)

    def _call_parse_args(self, owner: Value, given: Value = None, *_: Value, **__: Value) -> Value:
        words = self.real_of(given) if given is not None else []
        if words is MISSING:
            return self.lost("arguments of the command line that are not known")
        if given is None and self.frame is not None:
            self.collector.notice(
                self.here(), "the arguments of the command line have their defaults"
            )
        parser = self._parser(owner)
        found = self._parsed_arguments(parser, list(words))
        return self._call_Namespace(**found)

    def _call_parse_known_args(self, owner: Value, *given: Value, **_: Value) -> Value:
        return (self._call_parse_args(owner, *given), self.new_list())

    def _parsed_arguments(self, parser: Parser, words: list[str]) -> dict[str, Value]:
        commands = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        for one in commands:
            parser._remove_action(one)
        options = [a for a in parser._actions if a.option_strings]
        places = [a for a in parser._actions if not a.option_strings]
        for action in places:  # which take no words here: the script is run without any
            parser._remove_action(action)
        values = vars(parser.parse_known_args(words)[0])
        for action in places:
            parser._actions.append(action)
        found: dict[str, Value] = {
            name: self._argument_default(value) for name, value in values.items()
        }
        for action in [*options, *places]:
            own = parser.own_defaults.get(action.dest, MISSING)
            if own is not MISSING:
                found[action.dest] = own
            elif action in places and action.nargs in ("?", "*"):
                found[action.dest] = self._argument_default(action.default)
            elif action in places or getattr(action, "hagane_required", False):
                found[action.dest] = self._open_argument(action)
            kind = parser.own_types.get(action.dest)
            if kind is not None and isinstance(found[action.dest], str):
                found[action.dest] = self.call(kind, [found[action.dest]], {})
        for name, value in parser.own_defaults.items():
            found.setdefault(name, value)
        for one in commands:
            parser._actions.append(one)
            self._add_commands(one, found, words)
        return found

    def _add_commands(self, commands: Any, found: dict[str, Value], words: list[str]) -> None:
        """Add what the commands of a script set; without words, only the run knows which it is."""
        place = next((n for n, word in enumerate(words) if word in commands.choices), None)
        if place is not None:
            parser = commands.choices[words[place]]
            found.update(self._parsed_arguments(parser, words[place + 1 :]))
            if commands.dest != argparse.SUPPRESS:
                found[commands.dest] = words[place]
            return
        if commands.dest != argparse.SUPPRESS:
            found[commands.dest] = self.outside(f"the command '{commands.dest}' of the script")
        others: dict[str, Value] = {}
        for parser in dict.fromkeys(commands.choices.values()):
            for name, value in self._parsed_arguments(parser, []).items():
                if name in others and others[name] is not value:
                    value = self.join(self.unknown_truth(), others[name], value)
                others[name] = value
        found.update({name: value for name, value in others.items() if name not in found})

    def _argument_default(self, value: Any) -> Value:
        return self.lift(value) if not isinstance(value, Tensor | ListRef) else value

    def _open_argument(self, action: argparse.Action) -> Value:
        """Return the value of an argument that has to be given."""
        if action.nargs in ("+", "*") or isinstance(action.nargs, int):
            one = self.outside(f"the argument '{action.dest}' of the command line")
            return self.new_list([one])
        if action.type is int:
            return self.emit.fresh(action.dest)
        if action.type is float:
            return Real()
        return self.outside(f"the argument '{action.dest}' of the command line")
