"""Token masks against outlines_core: index build and time per mask, in one run.

python benchmarks/lexgen_masks.py [--vocabulary tokenizer.json] [--rounds 3]

Needs ``outlines_core`` for the comparison. Without a file the vocabulary is made up: all bytes, and
pieces of words with and without a space before them, 32,000 and 128,000 of them, seed fixed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from typing import Any

import numpy as np

from hagane.lexgen import TokenMask, Vocabulary

PATTERNS = {
    "date": r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "number": r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?",
    "e-mail": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}",
    "JSON": (
        r'\{ ?"name": ?"([^"\\\x00-\x1f]|\\["\\/bfnrt])*", ?"age": ?(0|[1-9][0-9]*), ?'
        r'"tags": ?\[("([^"\\\x00-\x1f]|\\["\\/bfnrt])*"(, ?"([^"\\\x00-\x1f]|\\["\\/bfnrt])*")*)?'
        r"\] ?\}"
    ),
}


def made_up(size: int) -> list[bytes]:
    """Return a vocabulary of a given size; the last token ends an output."""
    random.seed(7)
    syllables = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "er", "in")]
    tokens: dict[bytes, None] = {bytes([byte]): None for byte in range(256)}
    tokens |= {str(number).encode(): None for number in range(1000)}
    marks = ['"', '",', '":', "{", "}", "[", "]", '{"', '"]', "},", ", ", "..", "--", "://", "@"]
    tokens |= {mark.encode(): None for mark in marks}
    while len(tokens) < size - 1:
        word = "".join(random.choices(syllables, k=random.randint(1, 4)))
        word = random.choice([word, word.capitalize(), word.upper(), word + "é", "日本" + word])
        tokens[(random.choice(["", " ", " "]) + word).encode()] = None
    return [*tokens, b"</s>"]


def timed(action: Any, rounds: int) -> tuple[float, Any]:
    """Return the median seconds of an action, and its last result."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - started)
    return statistics.median(times), result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocabulary", help="a tokenizer.json instead of made-up tokens")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.vocabulary:
        read = Vocabulary.of(arguments.vocabulary)
        end = read.end if read.end is not None else len(read) - 1
        sets = [[token if token is not None else b"" for token in read.tokens]]
        ends = [end]
    else:
        sets = [made_up(32_000), made_up(128_000)]
        ends = [len(tokens) - 1 for tokens in sets]
    try:
        import outlines_core
    except ImportError:
        outlines_core = None
        print("outlines_core is not installed: no comparison")
    for tokens, end in zip(sets, ends, strict=True):
        for name, pattern in PATTERNS.items():
            print(json.dumps(compare(name, pattern, tokens, end, outlines_core, arguments.rounds)))


def compare(
    name: str, pattern: str, tokens: list[bytes], end: int, peer: Any, rounds: int
) -> dict[str, Any]:
    # The vocabulary is prepared once for many patterns, here and there.
    vocabulary = Vocabulary(tuple(None if n == end else t for n, t in enumerate(tokens)), end)
    TokenMask("a", vocabulary)
    build, index = timed(lambda: TokenMask(pattern, vocabulary), rounds)
    step, steps = walk(index)
    row = {
        "pattern": name,
        "tokens": len(tokens),
        "states": len(index.states),
        "build_seconds": round(build, 5),
        "mask_microseconds": round(step * 1e6, 2),
        "steps": steps,
    }
    if peer is None:
        return row
    groups: dict[bytes, list[int]] = {}
    for number, token in enumerate(tokens):
        if token and number != end:
            groups.setdefault(token, []).append(number)
    theirs = peer.Vocabulary(end, groups)
    peer_build, peer_index = timed(lambda: peer.Index(pattern, theirs), rounds)
    row["peer_build_seconds"] = round(peer_build, 5)
    row["build_ratio"] = round(peer_build / build, 2)
    row["peer_mask_microseconds"] = round(peer_step(peer.Guide(peer_index), len(tokens)) * 1e6, 2)
    return row


def walk(index: TokenMask, outputs: int = 20) -> tuple[float, int]:
    """Return the median seconds of one mask plus one advance over random outputs."""
    generator = np.random.default_rng(0)
    times = []
    for _ in range(outputs):
        state = index.start
        for _ in range(40):
            started = time.perf_counter()
            mask = index.mask(state)
            words = mask.words
            middle = time.perf_counter()
            choice = int(generator.choice(mask.tokens()))
            assert words.size
            again = time.perf_counter()
            state = index.advance(state, choice)
            times.append(middle - started + time.perf_counter() - again)
            if state == index.done:
                break
    return statistics.median(times), len(times)


def peer_step(guide: Any, size: int) -> float:
    """Return the median seconds of the peer's mask plus advance."""
    generator = np.random.default_rng(0)
    mask = np.zeros((1, (size + 31) // 32), np.int32)
    times = []
    for _ in range(40):
        if guide.is_finished():
            guide.reset()
        tokens = guide.get_tokens()
        started = time.perf_counter()
        guide.write_mask_into(mask.ctypes.data, mask.size, mask.itemsize)
        middle = time.perf_counter()
        choice = int(generator.choice(tokens))
        again = time.perf_counter()
        guide.advance(choice)
        times.append(middle - started + time.perf_counter() - again)
    return statistics.median(times)


if __name__ == "__main__":
    main()
