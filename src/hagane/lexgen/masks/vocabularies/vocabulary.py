"""The vocabulary of a tokenizer as byte strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.vocabularies.tokenizers import read_tokenizer, tokens_of

# ``Any``: a tokenizer of another package.
Source: TypeAlias = (
    "Vocabulary | str | Path | Sequence[str] | Sequence[bytes] | Mapping[str, int] | "
    "Mapping[bytes, int] | Any"
)

_END_NAMES = (
    "<|endoftext|>",
    "</s>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<eos>",
    "[SEP]",
    "<|end|>",
)
# How byte-level BPE and SentencePiece spell " the" and a new line.
_SPELLED = ("Ġthe", "▁the", "<0x0A>")


@dataclass(frozen=True)
class Vocabulary:
    """Tokens as bytes, by number.

    ``tokens[n]`` is None for numbers that are not used and for special tokens, which stand for no
    text. ``end`` is the number of the token that ends an output, or None.
    """

    tokens: tuple[bytes | None, ...]
    end: int | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of(cls, source: Source, end: int | str | None = None) -> Vocabulary:
        """Return the vocabulary of a tokenizer, a list or a mapping to numbers.

        A tokenizer is a file (``tokenizer.json``, ``tokenizer.model`` of SentencePiece, ranks of
        tiktoken) or an object of tokenizers, transformers, tiktoken or SentencePiece. Texts in
        lists and mappings are taken as they are; those of a tokenizer are decoded as it does
        (byte-level BPE, or pieces with ``▁`` for spaces and ``<0xHH>`` for bytes).

        Args:
            source: The vocabulary.
            end: The token that ends an output, by number or name; else that of the tokenizer, or
                one of a usual name.

        Raises:
            NoSuchFile: There is no such file.
            InvalidArgument: The file, the object or the list is no vocabulary, or outputs are not
                the texts of its tokens one behind the other (WordPiece).
        """
        if isinstance(source, Vocabulary):
            return source if end is None else cls(source.tokens, _end_number(end, source, {}))
        found = (
            read_tokenizer(Path(source)) if isinstance(source, str | Path) else tokens_of(source)
        )
        if found is not None:
            return _finish(found.texts, found.names, found.end if end is None else end)
        names: dict[Any, int]
        if isinstance(source, Mapping):
            names = dict(source)
        elif not isinstance(source, Iterable):
            raise InvalidArgument(
                "vocabulary: expected a tokenizer, a file, a list of tokens or a mapping to "
                f"numbers, got {type(source).__name__}"
            )
        else:
            tokens = [_as_bytes(token, number) for number, token in enumerate(source)]
            names = {token: number for number, token in enumerate(source)}
            _check_texts(names)
            return _finish(tokens, names, end)
        _check_texts(names)
        placed: list[bytes | None] = [None] * (max(names.values(), default=-1) + 1)
        for token, number in names.items():
            placed[number] = _as_bytes(token, number)
        return _finish(placed, names, end)

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """The numbers of the tokens that have text, sorted by their bytes."""
        used = [number for number, token in enumerate(self.tokens) if token]
        tokens = self.tokens
        used.sort(key=lambda number: tokens[number] or b"")
        return np.array(used, np.int32)

    @cached_property
    def alphabet(self) -> frozenset[int]:
        """The bytes of its tokens."""
        return frozenset(self.sorted_bytes[0])

    @cached_property
    def sorted_bytes(self) -> tuple[bytes, NDArray[np.int64]]:
        """The tokens in that order, joined, and where each starts; the last entry is the length."""
        parts = [self.tokens[number] or b"" for number in self.order.tolist()]
        lengths = np.fromiter((len(part) for part in parts), np.int64, len(parts))
        return b"".join(parts), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _check_texts(names: Mapping[Any, int]) -> None:
    """Refuse names of tokens that stand for other texts."""
    for name in _SPELLED:
        if name in names:
            raise InvalidArgument(
                f"vocabulary: expected the texts of tokens, got {name!r}, as tokenizers spell it; "
                "pass the tokenizer itself or its file, which say how it is decoded"
            )


def _as_bytes(token: str | bytes | None, number: int) -> bytes | None:
    if token is None or isinstance(token, bytes):
        return token
    if isinstance(token, str):
        return token.encode("utf-8", "surrogatepass")
    raise InvalidArgument(
        f"vocabulary: expected texts or bytes, got {type(token).__name__} as token {number}"
    )


def _name(token: Any) -> Any:
    """Return the name of a token, by which the end of outputs is found."""
    return token.decode("utf-8", "surrogateescape") if isinstance(token, bytes) else token


def _finish(
    tokens: Sequence[bytes | None], given: Mapping[Any, int], end: int | str | None
) -> Vocabulary:
    names = {_name(token): number for token, number in given.items()}
    if not any(tokens):
        raise InvalidArgument("vocabulary: expected at least one token with text, got none")
    made = Vocabulary(tuple(tokens))
    number = _end_number(end, made, names)
    if number is None:
        return made
    # The token that ends an output stands for no text.
    kept = tuple(None if n == number else token for n, token in enumerate(tokens))
    return Vocabulary(kept, number)


def _end_number(end: int | str | None, made: Vocabulary, names: Mapping[Any, int]) -> int | None:
    if end is None:
        return next((names[name] for name in _END_NAMES if name in names), None)
    if isinstance(end, str):
        if end not in names:
            raise InvalidArgument(f"vocabulary: there is no token '{end}' to end an output with")
        return names[end]
    if not 0 <= end < len(made.tokens):
        raise InvalidArgument(
            f"vocabulary: expected the end token between 0 and {len(made.tokens) - 1}, got {end}"
        )
    return end


def joined(tokens: Iterable[int], vocabulary: Vocabulary) -> bytes:
    """Return the text of a sequence of tokens."""
    return b"".join(vocabulary.tokens[number] or b"" for number in tokens)
