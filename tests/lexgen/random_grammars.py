"""Random grammars in GBNF's and Lark's notation, beside a parser of all prefixes.

Run: ``python -m tests.lexgen.random_grammars FIRST LAST`` prints the grammars whose masks differ
from those of an Earley parser, or that are refused without reason.

Trees of a grammar: ("text", str), ("class", str), ("call", rule), ("seq", [..]), ("alt", [..]),
("rep", tree, low, high), where ``high`` is None without a bound. Rules in capitals are terminals;
in Lark's notation there may be "_" to ignore between them.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

from hagane.errors import InvalidArgument
from hagane.lexgen import Grammar, TokenMask

LETTERS = "ab1"
TOKENS = ["a", "b", "1", "_", "_a", "b_", "a__", "aa", "ab", "ba", "b1", "1a", "aba", "abb", "11",
          "bbb", "a1b", "aaaa", "</s>"]  # fmt: skip
CLASSES = {"a": "[a]", "ab": "[ab]", "b1_": "[^a]", "1": "[0-9]", "ab1": "[a-b1]"}
Tree = tuple[Any, ...]


class Drawn:
    """Draws a grammar: its rules, the first one the start."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.names: list[str] = []
        self.rules: dict[str, Tree] = {}
        for name in "ABC"[: self.draw.randint(0, 3)]:
            # Lark refuses terminals of no text.
            self.rules[name] = ("seq", [("class", "ab"), self.tree(self.draw.randint(0, 2))])
            self.names.append(name)
        self.names += ["start", *(f"r{n}" for n in range(self.draw.randint(0, 4)))]
        for name in self.names:
            if name not in self.rules:
                self.rules[name] = self.tree(self.draw.randint(1, 3))
        self.ignores = self.draw.random() < 0.5

    def tree(self, depth: int) -> Tree:
        """Return a tree of at most so many levels."""
        way = self.draw.randrange(10 if depth else 5)
        if way < 2:
            count = self.draw.choice([0, 1, 1, 1, 2])
            return ("text", "".join(self.draw.choice(LETTERS) for _ in range(count)))
        if way == 2:
            return ("class", self.draw.choice(list(CLASSES)))
        if way < 5:
            return ("call", self.draw.choice(self.names)) if self.names else ("text", "b")
        inner = [self.tree(depth - 1) for _ in range(self.draw.randint(1, 3))]
        if way < 7:
            return ("seq", inner)
        if way < 9:
            return ("alt", inner)
        low, high = self.draw.choice([(0, None), (1, None), (0, 1), (2, 2), (1, 3), (2, None)])
        return ("rep", inner[0], low, high)

    def written(self, lark: bool) -> str:
        """Return the grammar in a notation."""
        sign = ": " if lark else " ::= "
        lines = []
        for name, tree in self.rules.items():
            name = name if lark or name != "start" else "root"
            lines.append(f"{name}{sign}{self._written(tree, lark, 0)}")
        if lark and self.ignores:
            lines.append('%ignore "_"')
        self.draw.shuffle(lines)
        return "\n".join(lines) + "\n"

    def between(self) -> dict[str, Tree]:
        """Return the rules with the text to ignore around terminals."""
        ignored = ("rep", ("text", "_"), 0, None)

        def wrapped(tree: Tree) -> Tree:
            match tree:
                case ("text", text):
                    return ("seq", [tree, ignored]) if text else tree
                case ("class", _):
                    return ("seq", [tree, ignored])
                case ("call", name):
                    return ("seq", [tree, ignored]) if name.isupper() else tree
                case (("seq" | "alt") as kind, inner):
                    return (kind, list(map(wrapped, inner)))
                case ("rep", inner, low, high):
                    return ("rep", wrapped(inner), low, high)
            raise AssertionError(tree)

        rules = {n: tree if n.isupper() else wrapped(tree) for n, tree in self.rules.items()}
        return rules | {"first": ("seq", [ignored, ("call", "start")])}

    def _written(self, tree: Tree, lark: bool, level: int) -> str:
        """Return a tree's text; in parentheses below the level of its operator."""
        match tree:
            case ("text", text):
                return '""' if not text and not lark else f'"{text}"' if text else "()"
            case ("class", letters):
                return f"/{CLASSES[letters]}/" if lark else CLASSES[letters]
            case ("call", name):
                return name if lark or name != "start" else "root"
            case ("seq", inner):
                text = " ".join(self._written(each, lark, 1) for each in inner)
                return f"({text})" if level > 1 else text
            case ("alt", inner):
                bar = self.draw.choice([" | ", "\n  | "])
                text = bar.join(self._written(each, lark, 1) for each in inner)
                return f"({text})" if level > 0 else text
            case ("rep", inner, low, high):
                body = self._written(inner, lark, 2)
                if inner[0] == "rep":
                    body = f"({body})"
                signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
                if (low, high) in signs:
                    return body + signs[low, high]
                if not lark:
                    return f"{body}{{{low}}}" if low == high else f"{body}{{{low},{high or ''}}}"
                if high is None:
                    return f"({body}~{low} {body}*)"
                return f"{body}~{low}" if low == high else f"{body}~{low}..{high}"
        raise AssertionError(tree)


class Prefixes:
    """The prefixes of the texts of a grammar (Earley's algorithm, all of it at once).

    Source: Earley, "An efficient context-free parsing algorithm", 1970; empty rules as in Aycock
    and Horspool, "Practical Earley parsing", 2002.
    """

    def __init__(self, rules: dict[str, Tree], start: str):
        self.start = start
        self.bodies: dict[Any, list[list[Any]]] = {}  # a symbol's ways; a set is one of its letters
        for name, tree in rules.items():
            self.bodies[name] = [self._symbols(tree)]
        self._drop_endless()
        self.empty = self._closed(lambda symbol, known: symbol in known)
        self.known: dict[str, list[set[Any]]] = {}

    def _symbols(self, tree: Tree) -> list[Any]:
        match tree:
            case ("text", text):
                return [frozenset(letter) for letter in text]
            case ("class", letters):
                return [frozenset(letters)]
            case ("call", name):
                return [name]
            case ("seq", inner):
                return [symbol for each in inner for symbol in self._symbols(each)]
            case ("alt", inner):
                return [self._new([self._symbols(each) for each in inner])]
            case ("rep", inner, low, high):
                body = self._symbols(inner)
                if high is None:
                    again = self._new([[]])
                    self.bodies[again].append([*body, again])
                    return [*(body * low), again]
                maybe = self._new([[], body])
                return [*(body * low), *([maybe] * (high - low))]
        raise AssertionError(tree)

    def _new(self, ways: list[list[Any]]) -> Any:
        number = len(self.bodies), len(ways), "inner"
        while number in self.bodies:
            number = (number[0] + 1, *number[1:])
        self.bodies[number] = ways
        return number

    def _closed(self, holds: Any) -> set[Any]:
        known: set[Any] = set()
        while True:
            more = {
                symbol
                for symbol, ways in self.bodies.items()
                if any(all(holds(each, known) for each in way) for way in ways)
            }
            if more == known:
                return known
            known = more

    def _drop_endless(self) -> None:
        ends = self._closed(lambda symbol, known: isinstance(symbol, frozenset) or symbol in known)
        self.bodies = {
            symbol: [way for way in ways if all(isinstance(e, frozenset) or e in ends for e in way)]
            for symbol, ways in self.bodies.items()
        }
        self.any = self.start in ends

    def columns(self, text: str) -> list[set[Any]]:
        """Return the items behind each letter."""
        if text in self.known:
            return self.known[text]
        if not text:
            before: list[set[Any]] = []
            first = {(self.start, n, 0, 0) for n in range(len(self.bodies[self.start]))}
        else:
            before = self.columns(text[:-1])
            first = {
                (symbol, way, dot + 1, origin)
                for symbol, way, dot, origin in before[-1]
                if dot < len(self.bodies[symbol][way])
                and isinstance(self.bodies[symbol][way][dot], frozenset)
                and text[-1] in self.bodies[symbol][way][dot]
            }
        found = [*before, first]
        here = len(found) - 1
        agenda = list(first)
        while agenda:
            symbol, way, dot, origin = agenda.pop()
            body = self.bodies[symbol][way]
            new: list[Any] = []
            if dot == len(body):
                for other, number, at, begun in found[origin]:
                    ways = self.bodies[other][number]
                    if at < len(ways) and ways[at] == symbol:
                        new.append((other, number, at + 1, begun))
            elif not isinstance(body[dot], frozenset):
                new += [(body[dot], n, 0, here) for n in range(len(self.bodies[body[dot]]))]
                if body[dot] in self.empty:
                    new.append((symbol, way, dot + 1, origin))
            for item in new:
                if item not in first:
                    first.add(item)
                    agenda.append(item)
        self.known[text] = found
        return found

    def begins(self, text: str) -> bool:
        """Return whether some text of the grammar begins so."""
        return self.any and bool(self.columns(text)[-1])

    def matches(self, text: str) -> bool:
        """Return whether the text is one of the grammar."""
        return self.any and any(
            symbol == self.start and not origin and dot == len(self.bodies[symbol][way])
            for symbol, way, dot, origin in self.columns(text)[-1]
        )


def difference(seed: int, lark: bool, native: bool | None = None) -> str | None:
    """Return the first difference between masks and the parser, None if there is none."""
    drawn = Drawn(seed)
    text = drawn.written(lark)
    ignores = lark and drawn.ignores
    truth = Prefixes(drawn.between(), "first") if ignores else Prefixes(drawn.rules, "start")
    try:
        mask = TokenMask(Grammar(text), TOKENS, native=native)
    except InvalidArgument as error:
        if "no text matches" in str(error) or "calls itself" in str(error):
            return None if not truth.any else f"{text}refused: {error}"
        return f"{text}refused: {error}"
    if not truth.any:
        return f"{text}taken, without any text"
    frontier = [(mask.start, "")]
    for _ in range(4):
        following = []
        for state, before in frontier:
            if mask.accepts(state) != truth.matches(before):
                return f"{text}{before!r}: accepted {mask.accepts(state)}"
            allowed = mask.mask(state)
            for number, token in enumerate(TOKENS[:-1]):
                if allowed[number] != truth.begins(before + token):
                    return f"{text}{before!r} {token!r}: allowed {allowed[number]}"
                if allowed[number]:
                    following.append((mask.advance(state, number), before + token))
        frontier = drawn.draw.sample(following, min(len(following), 8))
    return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    arguments = parser.parse_args()
    bad = 0
    for seed in range(arguments.first, arguments.last):
        for lark in (False, True):
            found = difference(seed, lark)
            if found:
                bad += 1
                print(f"--- {seed} {'lark' if lark else 'gbnf'}\n{found}")
    print(f"{bad} differences")


if __name__ == "__main__":
    main()
