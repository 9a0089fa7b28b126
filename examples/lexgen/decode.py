"""Decode from a small language model so that the output stays within a pattern.

    python examples/lexgen/decode.py MODEL_FOLDER TOKENS.json [--pattern REGEX] [--count 5]

``MODEL_FOLDER`` holds a GPT-2 checkpoint (``pytorch_model.bin``, ``config.json``); ``TOKENS.json``
maps tokens to numbers. The model of the package ``microformer-mgm`` (GPT-2 over names of
microbial genera, 9,669 tokens, in ``mgm/resources/general_model``) is such a one; its tokens are
written by ``tokens_of`` below. By default only genera whose names end in "-bacter" or "-bacterium"
may come, two to six of them.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from gpt2_onnx import gpt2_model

from hagane import InferenceSession
from hagane.lexgen import TokenMask
from hagane.lexgen.masks.vocabularies.vocabulary import joined

PATTERN = r"(g__[A-Z][a-z]*bacter(ium)?){2,6}"


class _Plain:
    """Stands for the classes of a pickled tokenizer, whose code is not needed."""

    def __init__(self, *arguments: Any, **named: Any):
        pass

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


class _Tokenizer(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return type(name, (_Plain,), {})


def tokens_of(path: Path) -> dict[str, int]:
    """Return tokens and numbers from a JSON file, or from the package's pickled tokenizer."""
    if path.suffix == ".json":
        return dict(json.loads(path.read_text()))
    with path.open("rb") as file:
        return dict(_Tokenizer(file).load().vocab)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("tokens", type=Path)
    parser.add_argument("--pattern", default=PATTERN)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    config = json.loads((arguments.model / "config.json").read_text())
    session = InferenceSession(gpt2_model(arguments.model).SerializeToString())
    tokens = tokens_of(arguments.tokens)
    # Tokens in angle brackets stand for no text.
    plain: list[str | None] = [None] * config["vocab_size"]
    for token, number in tokens.items():
        plain[number] = None if token.startswith("<") else token
    plain[config["eos_token_id"]] = "<end>"
    started = time.perf_counter()
    mask = TokenMask(arguments.pattern, plain, end=config["eos_token_id"])
    print(f"index of {len(mask.states)} states in {time.perf_counter() - started:.4f} s")
    generator = np.random.default_rng(arguments.seed)
    for _ in range(arguments.count):
        ids, state = [config["bos_token_id"]], mask.start
        while state != mask.done:
            (logits,) = session.run(None, {"ids": np.array([ids], np.int64)})
            allowed = mask.apply(logits[0], state).astype(np.float64)
            chances = np.exp(allowed - allowed.max())
            ids.append(int(generator.choice(len(chances), p=chances / chances.sum())))
            state = mask.advance(state, ids[-1])
        text = joined(ids[1:], mask.vocabulary).decode()
        assert re.fullmatch(arguments.pattern, text), text
        print(text)


if __name__ == "__main__":
    main()
