"""Tokenizer, with which exporters of scikit-learn's text models begin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, STRING, STRING_LIST, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.text.re2 import from_re2
from hagane.ops.values import strings
from hagane.ops.vjp import TEXT

# Words that begin and end each text where it is marked.
_START, _END = "\x02", "\x03"


def _tokenizing(
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: Sequence[str] | None = None,
    tokenexp: str | None = None,
) -> Callable[[Array], Array]:
    if (tokenexp is None) == (separators is None):
        raise ValueError("expected one of the attributes 'separators' and 'tokenexp'")
    split = _words_of(tokenexp) if tokenexp is not None else _between(list(separators or ()))

    def tokenize(x: Array) -> Array:
        if x.ndim not in (1, 2):
            raise ValueError(f"expected shape [C] or [N, C], got {list(x.shape)}")
        found = [[w for w in split(text) if len(w) >= mincharnum] for text in x.ravel().tolist()]
        width = max(map(len, found), default=0)
        if mark and width:
            found = [[_START, *words, _END] for words in found]
            width += 2
        padded = [word for words in found for word in (*words, *[pad_value] * (width - len(words)))]
        return strings(padded).reshape(*x.shape, width)

    return tokenize


def _words_of(expression: str) -> Callable[[str], Iterator[str]]:
    """Return a function that finds the longest words that an expression matches, in order."""
    pattern = re.compile(from_re2(expression))
    # Elsewhere the first match that Python finds is the longest.
    chooses = re.search(r"\||[*+?}]\?", expression) is not None

    def words(text: str) -> Iterator[str]:
        at = 0
        while (match := pattern.search(text, at)) is not None:
            begin, end = match.span()
            if chooses:
                longer = (e for e in range(len(text), end, -1) if pattern.fullmatch(text, begin, e))
                end = next(longer, end)
            if end > begin:
                yield text[begin:end]
            at = max(end, begin + 1)

    return words


def _between(separators: Sequence[str]) -> Callable[[str], Sequence[str]]:
    """Return a function that finds what lies between separators, which are expressions."""
    if not separators or list(separators) == [""]:
        return list  # characters
    expressions = [re.compile(from_re2(each)) for each in separators]

    def split(text: str) -> list[str]:
        words = [text]
        for expression in expressions:
            words = [part for word in words for part in _parts(expression, word)]
        return [word for word in words if word]

    return split


def _parts(expression: re.Pattern[str], text: str) -> Iterator[str]:
    """Yield the pieces of a text between matches that are not empty."""
    begin = 0
    for match in expression.finditer(text):
        if match[0]:
            yield text[begin : match.start()]
            begin = match.end()
    yield text[begin:]


def _tokenizer(
    x: Array,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: Sequence[str] | None = None,
    tokenexp: str | None = None,
) -> Array:
    return _tokenizing(
        mark=mark,
        mincharnum=mincharnum,
        pad_value=pad_value,
        separators=separators,
        tokenexp=tokenexp,
    )(x)


def _infer(ctx: InferContext) -> Sequence[Any]:
    return [(*ctx.shape(0), ctx.fresh("words"))]


OPERATORS = (OpDef("Tokenizer", _infer, _tokenizer, domain=DOMAIN, ready=_tokenizing, vjp=TEXT),)
SCHEMAS = {
    (DOMAIN, "Tokenizer"): declare(
        "X:T -> Y:T",
        {
            "mark": 0, "mincharnum": 1, "pad_value": "#", "separators": STRING_LIST,
            "tokenexp": STRING,
        },
        T="string",
    ),
}  # fmt: skip
