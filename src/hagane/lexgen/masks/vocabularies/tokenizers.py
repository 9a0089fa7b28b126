"""Tokenizers of other packages, as files and as objects: the bytes of each token."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument, NoSuchFile


@dataclass(frozen=True)
class Tokens:
    """What a tokenizer says of its tokens.

    Attributes:
        texts: The bytes of each number; None where there are none, or a special token.
        names: The numbers by name, special tokens included.
        end: The token that ends an output, where the tokenizer itself names one.
    """

    texts: list[bytes | None]
    names: Mapping[Any, int] = field(default_factory=dict)
    end: int | None = None


def read_tokenizer(path: Path) -> Tokens:
    """Return the tokens of a file.

    It is a ``tokenizer.json`` or a plain ``vocab.json``, a model of SentencePiece, or ranks of
    tiktoken.

    Raises:
        NoSuchFile: There is no such file.
        InvalidArgument: It is none of those, or its tokens are not joined as they are.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NoSuchFile(f"there is no tokenizer '{path}'") from None
    except OSError as error:
        raise InvalidArgument(f"tokenizer '{path}': {error}") from None
    name = f"tokenizer '{path}'"
    if content[:1] == b"\n" and content.lstrip()[:1] != b"{":  # a message whose first field is text
        return _of_pieces(_sentencepiece_pieces(content, name), name)
    ranks = _ranks(content)
    if ranks:
        return _placed(ranks)
    try:
        parsed = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise InvalidArgument(
            f"{name}: expected JSON, a model of SentencePiece or ranks of tiktoken: {error}"
        ) from None
    return _of_json(parsed, name)


def tokens_of(source: Any) -> Tokens | None:
    """Return the tokens of an object of tokenizers, transformers, tiktoken or SentencePiece.

    None: it is of none of these. The packages are not imported.

    Raises:
        InvalidArgument: Its tokens are not joined as they are, or it does not show them.
    """
    name = f"vocabulary: {type(source).__name__}"
    if hasattr(source, "decode_single_token_bytes"):  # tiktoken
        return _of_tiktoken(source)
    if hasattr(source, "id_to_piece") and hasattr(source, "is_control"):  # SentencePiece
        pieces = [
            (source.id_to_piece(number), _kind_of(source, number))
            for number in range(source.get_piece_size())
        ]
        return _of_pieces(pieces, name, source.eos_id())
    if hasattr(source, "convert_ids_to_tokens"):  # transformers
        inner = getattr(source, "backend_tokenizer", None)
        if inner is None or not hasattr(inner, "to_str"):
            raise InvalidArgument(
                f"{name}: expected a fast tokenizer, which has a 'backend_tokenizer'; pass the "
                "file of its model instead"
            )
        made = _of_json(json.loads(inner.to_str()), name)
        end = source.eos_token_id
        return Tokens(made.texts, made.names, end if isinstance(end, int) else None)
    if hasattr(source, "to_str") and hasattr(source, "get_vocab"):  # tokenizers
        return _of_json(json.loads(source.to_str()), name)
    return None


def _placed(numbers: Mapping[bytes, int]) -> Tokens:
    texts: list[bytes | None] = [None] * (max(numbers.values(), default=-1) + 1)
    for text, number in numbers.items():
        texts[number] = text
    return Tokens(texts)


# Files and objects of tokenizers and transformers.


def _of_json(content: Any, name: str) -> Tokens:
    model = content.get("model") if isinstance(content, dict) else None
    if (
        isinstance(content, dict)
        and model is None
        and all(isinstance(number, int) for number in content.values())
    ):
        model = {"vocab": content}  # a plain vocab.json, as GPT-2 has
        content = {"decoder": {"type": "ByteLevel"}} if "Ġthe" in model["vocab"] else {}
    if not isinstance(model, dict) or "vocab" not in model:
        raise InvalidArgument(f"{name}: expected a 'model' with a 'vocab', got neither")
    _check_joined(model, name)
    vocab, unknown = model["vocab"], model.get("unk_token")
    if isinstance(vocab, list):  # Unigram: pairs of piece and score
        place = model.get("unk_id")
        unknown = None if place is None else vocab[place][0]
        vocab = {piece: number for number, (piece, _) in enumerate(vocab)}
    added = {token["content"]: token for token in content.get("added_tokens", [])}
    names = dict(vocab) | {text: token["id"] for text, token in added.items()}
    decode = _from_byte_level if "ByteLevel" in _types(content) else _from_piece
    texts: list[bytes | None] = [None] * (max(names.values(), default=-1) + 1)
    for text, number in names.items():
        special = added[text].get("special", False) if text in added else text == unknown
        if not special:
            texts[number] = text.encode() if text in added else decode(text)
    return Tokens(texts, names)


def _check_joined(model: Mapping[str, Any], name: str) -> None:
    """Refuse models whose outputs are not the texts of their tokens, one behind the other."""
    kind = model.get("type")
    suffix = model.get("end_of_word_suffix")
    if kind in ("WordPiece", "WordLevel"):
        why = f"a {kind} model, whose decoder puts spaces between words"
    elif suffix:
        why = f"one that ends words with {suffix!r}, which its decoder replaces by the place"
    else:
        return
    raise InvalidArgument(
        f"{name}: expected tokens that are joined as they are (byte-level BPE, SentencePiece), "
        f"got {why}; pass a list of the texts that the tokens stand for"
    )


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


# SentencePiece: sentencepiece_model.proto, ModelProto.SentencePiece.Type.

_NORMAL, _UNKNOWN, _CONTROL, _DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6


def _kind_of(source: Any, number: int) -> int:
    for kind, asks in (
        (_UNKNOWN, source.is_unknown),
        (_CONTROL, source.is_control),
        (_UNUSED, source.is_unused),
        (_BYTE, source.is_byte),
    ):
        if asks(number):
            return kind
    return _NORMAL


def _of_pieces(pieces: list[tuple[str, int]], name: str, end: int = -1) -> Tokens:
    texts: list[bytes | None] = []
    for piece, kind in pieces:
        if kind == _BYTE:
            texts.append(_from_piece(piece))
        elif kind in (_NORMAL, _DEFINED):
            texts.append(piece.replace("▁", " ").encode())
        else:
            texts.append(None)
    if not pieces:
        raise InvalidArgument(f"{name}: expected a model of SentencePiece, got no pieces")
    names = {piece: number for number, (piece, _) in enumerate(pieces)}
    return Tokens(texts, names, end if end >= 0 else None)


def _sentencepiece_pieces(content: bytes, name: str) -> list[tuple[str, int]]:
    try:
        return [_piece(value) for number, value in _fields(content) if number == 1]
    except (ValueError, IndexError, TypeError):
        raise InvalidArgument(
            f"{name}: expected a model of SentencePiece, got a damaged one"
        ) from None


def _piece(message: Any) -> tuple[str, int]:
    found = dict(_fields(bytes(message)))
    return bytes(found.get(1, b"")).decode(), int(found.get(3, _NORMAL))


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message of protocol buffers: its number, and a number or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            size = varint()
        if size is None or at + size > len(message):
            raise ValueError("no message")
        yield tag >> 3, message[at : at + size]
        at += size


# tiktoken.


def _ranks(content: bytes) -> dict[bytes, int]:
    """Return the tokens of a file of ranks: in each line base64 and a number."""
    found: dict[bytes, int] = {}
    for line in content.splitlines():
        parts = line.split()
        if len(parts) != 2 or not parts[1].isdigit():
            return {}
        try:
            found[base64.b64decode(parts[0], validate=True)] = int(parts[1])
        except binascii.Error:
            return {}
    return found


def _of_tiktoken(source: Any) -> Tokens:
    special = {text: source.encode_single_token(text) for text in source.special_tokens_set}
    numbers = set(special.values())
    texts: list[bytes | None] = []
    for number in range(source.n_vocab):
        try:
            text = None if number in numbers else source.decode_single_token_bytes(number)
        except KeyError:
            text = None
        texts.append(text)
    return Tokens(texts, special, special.get("<|endoftext|>"))
