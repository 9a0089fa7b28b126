"""Token masks of JSON schemas beside llguidance, xgrammar and outlines_core, in one run.

python benchmarks/lexgen_peers.py [--suite FOLDER] [--vocabulary tokenizer.json] [--limit 12]
    [--real 40] [--every 1]

Needs the packages of that name; what is missing is left out. Schemas come from the installed
packages: those that ``check_jsonschema`` checks real files by (``real``), and, with ``--suite``,
JSON Schema's own test suite (``tests/draft2020-12``), whose tests say for each value whether a
schema permits it. For each schema: whether it is taken, the time to the first mask, the median time
of a mask along a permitted value, and of a step (a mask, and the token taken), and on the suite
whether a forbidden value is accepted.

A schema counts for an engine that takes it within ``--limit`` seconds. Ratios are of schemas that
both take; an engine that does not come back (compiled code is not interrupted) is left out with
``--engines``. Times are of the processor, one thread; take them on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGALRM, alarm, signal
from typing import Any

import numpy as np
from lexgen_masks import made_up

# Walks along a text; the times of masks and of steps, None if it is not accepted.
Mask = Callable[[bytes], list[tuple[float, float]] | None]


class TooSlow(Exception):
    """An engine took longer than the limit."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooSlow

    before = signal(SIGALRM, stop)
    alarm(seconds)
    try:
        yield
    finally:
        alarm(0)
        signal(SIGALRM, before)


class Pieces:
    """Splits a text into the longest tokens of a vocabulary."""

    def __init__(self, tokens: list[bytes]):
        self.number = {token: number for number, token in enumerate(tokens)}
        self.longest = max(map(len, tokens))

    def __call__(self, text: bytes) -> list[int]:
        found, at = [], 0
        while at < len(text):
            size = min(self.longest, len(text) - at)
            while text[at : at + size] not in self.number:
                size -= 1
            found.append(self.number[text[at : at + size]])
            at += size
        return found


def hagane(tokens: list[bytes], pieces: Pieces) -> Callable[[dict[str, Any]], Mask]:
    import warnings

    from hagane.lexgen import TokenMask, Vocabulary

    vocabulary = Vocabulary.of(tokens)
    TokenMask({"type": "null"}, vocabulary)  # its trie, which peers build here too

    def build(schema: dict[str, Any]) -> Mask:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mask = TokenMask(schema, vocabulary)
        mask.mask(mask.start)

        def walk(text: bytes) -> list[tuple[float, float]] | None:
            state, times = mask.start, []
            for token in pieces(text):
                started = time.perf_counter()
                allowed = mask.mask(state)
                masked = time.perf_counter() - started
                if not allowed[token]:
                    return None
                between = time.perf_counter()
                state = mask.advance(state, token)
                times.append((masked, masked + time.perf_counter() - between))
            return times if mask.accepts(state) else None

        return walk

    return build


def llguidance(tokens: list[bytes], pieces: Pieces) -> Callable[[dict[str, Any]], Mask]:
    import llguidance as package

    class Wrapper:
        eos_token_id = len(tokens) - 1
        bos_token_id = None
        special_token_ids: list[int] = []  # noqa: RUF012

        def __init__(self) -> None:
            self.tokens = tokens

        def __call__(self, text: bytes | str) -> list[int]:
            return pieces(text.encode() if isinstance(text, str) else text)

    tokenizer = package.LLTokenizer(package.TokenizerWrapper(Wrapper()))
    options = {"whitespace_flexible": False}

    def build(schema: dict[str, Any]) -> Mask:
        grammar = package.LLMatcher.grammar_from_json_schema(schema, overrides=options)
        first = package.LLMatcher(tokenizer, grammar)
        if first.is_error():
            raise ValueError(first.get_error())
        first.compute_bitmask()

        def walk(text: bytes) -> list[tuple[float, float]] | None:
            matcher, times = package.LLMatcher(tokenizer, grammar), []
            for token in pieces(text):
                started = time.perf_counter()
                words = np.frombuffer(matcher.compute_bitmask(), np.uint32)
                masked = time.perf_counter() - started
                if not words[token >> 5] >> (token & 31) & 1:
                    return None
                between = time.perf_counter()
                matcher.consume_token(token)
                times.append((masked, masked + time.perf_counter() - between))
            return times if matcher.is_accepting() else None

        return walk

    return build


def xgrammar(tokens: list[bytes], pieces: Pieces) -> Callable[[dict[str, Any]], Mask]:
    import xgrammar as package

    info = package.TokenizerInfo(
        tokens, package.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[len(tokens) - 1]
    )
    compiler = package.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def build(schema: dict[str, Any]) -> Mask:
        grammar = compiler.compile_json_schema(
            json.dumps(schema), any_whitespace=False, separators=(", ", ": "), strict_mode=False
        )
        words = package.allocate_token_bitmask(1, len(tokens))
        package.GrammarMatcher(grammar).fill_next_token_bitmask(words)

        def walk(text: bytes) -> list[tuple[float, float]] | None:
            matcher, times = package.GrammarMatcher(grammar), []
            for token in pieces(text):
                started = time.perf_counter()
                matcher.fill_next_token_bitmask(words)
                masked = time.perf_counter() - started
                if not int(words[0, token >> 5]) >> (token & 31) & 1:
                    return None
                between = time.perf_counter()
                matcher.accept_token(token)
                times.append((masked, masked + time.perf_counter() - between))
            return times if matcher.accept_token(len(tokens) - 1) else None

        return walk

    return build


def outlines_core(tokens: list[bytes], pieces: Pieces) -> Callable[[dict[str, Any]], Mask]:
    import outlines_core as package
    from outlines_core.json_schema import build_regex_from_schema

    end = len(tokens) - 1
    known: dict[bytes, list[int]] = {}
    for number, token in enumerate(tokens[:-1]):
        known.setdefault(token, []).append(number)
    vocabulary = package.Vocabulary(end, known)

    def build(schema: dict[str, Any]) -> Mask:
        index = package.Index(build_regex_from_schema(json.dumps(schema)), vocabulary)

        def walk(text: bytes) -> list[tuple[float, float]] | None:
            guide, times = package.Guide(index), []
            for token in pieces(text):
                started = time.perf_counter()
                allowed = guide.get_tokens()
                masked = time.perf_counter() - started
                if token not in set(allowed):
                    return None
                between = time.perf_counter()
                guide.advance(token)
                times.append((masked, masked + time.perf_counter() - between))
            return times if end in guide.get_tokens() else None

        return walk

    return build


ENGINES = {each.__name__: each for each in (hagane, llguidance, xgrammar, outlines_core)}


def real_schemas(most: int) -> list[tuple[str, Any, list[tuple[Any, bool]]]]:
    """Return schemas of real files, the smallest first: no values of theirs are at hand."""
    package = importlib.util.find_spec("check_jsonschema")
    if package is None or not package.submodule_search_locations:
        return []
    folder = Path(package.submodule_search_locations[0]) / "builtin_schemas"
    paths = sorted(folder.rglob("*.json"), key=lambda path: path.stat().st_size)
    return [(path.stem, json.loads(path.read_text("utf-8")), []) for path in paths[:most]]


def suite_schemas(folder: Path) -> list[tuple[str, Any, list[tuple[Any, bool]]]]:
    """Return the schemas of a suite of tests, with values and whether they are permitted."""
    found = []
    for path in sorted(folder.glob("*.json")):
        for group in json.loads(path.read_text("utf-8")):
            tests = [(test["data"], test["valid"]) for test in group["tests"]]
            found.append((f"{path.stem}: {group['description']}", group["schema"], tests))
    return found


def texts(value: Any) -> list[bytes]:
    """Return the ways in which engines write a value."""
    ways = [(", ", ": "), (",", ":")]
    return [json.dumps(value, separators=way, ensure_ascii=False).encode() for way in ways]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--vocabulary", type=Path)
    parser.add_argument("--limit", type=int, default=12, help="seconds for a schema")
    parser.add_argument("--real", type=int, default=40, help="how many schemas of real files")
    parser.add_argument("--engines", default=",".join(ENGINES), help="which, hagane among them")
    parser.add_argument("--every", type=int, default=1, help="take each n-th schema of the suite")
    parser.add_argument("--size", type=int, default=32_000, help="of the made-up vocabulary")
    arguments = parser.parse_args()
    tokens = made_up(arguments.size)
    if arguments.vocabulary is not None:
        pieces_of = json.loads(arguments.vocabulary.read_text("utf-8"))["model"]["vocab"]
        tokens = [text.replace("Ġ", " ").encode() for text in pieces_of] + [b"</s>"]
    pieces = Pieces(tokens)
    engines = {}
    for name in arguments.engines.split(","):
        try:
            engines[name] = ENGINES[name](tokens, pieces)
        except ImportError:
            print(f"{name} is not installed")
    sets = {"real": real_schemas(arguments.real)} if arguments.real else {}
    if arguments.suite is not None:
        sets["suite"] = suite_schemas(arguments.suite)[:: arguments.every]
    for title, schemas in sets.items():
        rows = {name: measure(build, schemas, arguments.limit) for name, build in engines.items()}
        show(title, len(schemas), rows)


def measure(
    build: Callable[[dict[str, Any]], Mask], schemas: list[Any], limit: int
) -> dict[str, dict[str, Any]]:
    """Return for each schema that an engine takes its times and its judgements."""
    found: dict[str, dict[str, Any]] = {}
    for number, (name, schema, tests) in enumerate(schemas):
        started = time.process_time()
        try:
            with within(limit):
                walk = build(schema)
                built = time.process_time() - started
                steps: list[tuple[float, float]] = []
                wrong, missed = 0, 0
                for value, valid in tests:
                    ways = [times for text in texts(value) if (times := walk(text)) is not None]
                    wrong += bool(ways) and not valid
                    missed += valid and not ways
                    for times in ways[:1]:
                        steps += times
        except (TooSlow, Exception):
            continue
        found[f"{number} {name}"] = {
            "build": built,
            "mask": statistics.median(mask for mask, _ in steps) if steps else None,
            "step": statistics.median(step for _, step in steps) if steps else None,
            "wrong": wrong,
            "missed": missed,
        }
    return found


def show(title: str, count: int, rows: dict[str, dict[str, dict[str, Any]]]) -> None:
    print(f"\n{title}: {count} schemas")
    mine = rows.get("hagane", {})
    for name, found in rows.items():
        wrong = sum(bool(each["wrong"]) for each in found.values())
        exact = sum(not each["wrong"] and not each["missed"] for each in found.values())
        line = f"{name:14} takes {len(found):4}, exact {exact:4}, unsound {wrong:3}"
        for what in ("build", "mask", "step"):
            shared = [key for key in found if key in mine]
            pairs = [(found[key][what], mine[key][what]) for key in shared]
            ratios = [theirs / ours for theirs, ours in pairs if theirs and ours]
            own = [each[what] for each in found.values() if each[what]]
            if own:
                line += f"; {what} {statistics.median(own) * 1e6:9.1f} us"
            if ratios and name != "hagane":
                line += f" ({statistics.geometric_mean(ratios):.2f} of hagane's)"
        print(line)


if __name__ == "__main__":
    main()
