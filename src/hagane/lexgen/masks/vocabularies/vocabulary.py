"""The vocabulary of a tokenizer as byte strings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument, NoSuchFile

Source: TypeAlias = (
    "Vocabulary | str | Path | Sequence[str] | Sequence[bytes] | Mapping[str, int] | "
    "Mapping[bytes, int]"
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
        """Return the vocabulary of a ``tokenizer.json`` file, a list or a mapping to numbers.

        Texts in lists and mappings are taken as they are; those of a file are decoded as its
        tokenizer does (byte-level BPE, or pieces with ``▁`` for spaces and ``<0xHH>`` for bytes).

        Args:
            source: The vocabulary.
            end: The token that ends an output, by number or name.

        Raises:
            NoSuchFile: There is no such file.
            InvalidArgument: The file or the list is no vocabulary.
        """
        if isinstance(source, Vocabulary):
            return source if end is None else cls(source.tokens, _end_number(end, source, {}))
        if isinstance(source, str | Path):
            return _read_tokenizer(Path(source), end)
        if isinstance(source, Mapping):
            names: dict[Any, int] = dict(source)
        else:
            tokens = [_as_bytes(token, number) for number, token in enumerate(source)]  # type: ignore[arg-type]
            names = {token: number for number, token in enumerate(source)}
            return _finish(tokens, names, end)
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


def _read_tokenizer(path: Path, end: int | str | None) -> Vocabulary:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NoSuchFile(f"there is no tokenizer '{path}'") from None
    except (ValueError, OSError) as error:
        raise InvalidArgument(f"tokenizer '{path}': expected JSON: {error}") from None
    model = content.get("model") if isinstance(content, dict) else None
    if (
        isinstance(content, dict)
        and model is None
        and all(isinstance(number, int) for number in content.values())
    ):
        model = {"vocab": content}  # a plain vocab.json, as GPT-2 has
        content = {"decoder": {"type": "ByteLevel"}} if "Ġthe" in model["vocab"] else {}
    if not isinstance(model, dict) or "vocab" not in model:
        raise InvalidArgument(f"tokenizer '{path}': expected a 'model' with a 'vocab', got neither")
    vocab = model["vocab"]
    if isinstance(vocab, list):  # Unigram: pairs of piece and score
        vocab = {piece: number for number, (piece, _) in enumerate(vocab)}
    added = {token["content"]: token for token in content.get("added_tokens", [])}
    names = dict(vocab) | {name: token["id"] for name, token in added.items()}
    decode = _from_byte_level if "ByteLevel" in _types(content) else _from_piece
    tokens: list[bytes | None] = [None] * (max(names.values(), default=-1) + 1)
    for name, number in names.items():
        special = name in added and added[name].get("special", False)
        if special:
            continue
        tokens[number] = name.encode() if name in added else decode(name)
    return _finish(tokens, names, end)


def _types(content: Mapping[str, Any]) -> set[str]:
    """Return the types of all parts of the decoder and the pre-tokenizer."""
    found = set()
    stack = [content.get("decoder"), content.get("pre_tokenizer")]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            found.add(str(part.get("type")))
            stack += [*part.get("decoders", []), *part.get("pretokenizers", [])]
    return found


def _byte_letters() -> dict[str, int]:
    """Return which letter byte-level BPE writes for which byte (Radford et al., GPT-2, 2019)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {chr(byte): byte for byte in plain}
    others = (byte for byte in range(256) if byte not in set(plain))
    return letters | {chr(256 + index): byte for index, byte in enumerate(others)}


_LETTERS = _byte_letters()


def _from_byte_level(name: str) -> bytes:
    try:
        return bytes(_LETTERS[char] for char in name)
    except KeyError:
        return name.encode()


def _from_piece(name: str) -> bytes:
    if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
        return bytes([int(name[3:5], 16)])
    return name.replace("▁", " ").encode()


def joined(tokens: Iterable[int], vocabulary: Vocabulary) -> bytes:
    """Return the text of a sequence of tokens."""
    return b"".join(vocabulary.tokens[number] or b"" for number in tokens)
