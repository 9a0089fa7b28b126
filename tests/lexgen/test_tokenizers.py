"""Tokenizers of other packages, by file and as objects, as vocabularies of token masks."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import TokenMask, Vocabulary

LLAMA = {
    "model": {
        "type": "BPE",
        "unk_token": "<unk>",
        "byte_fallback": True,
        "vocab": {"<unk>": 0, "</s>": 1, "<0x0A>": 2, "▁a": 3, "a": 4, "▁": 5, "<stop>": 6},
    },
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}]},
    "added_tokens": [{"content": name, "id": n, "special": True}
                     for n, name in ((1, "</s>"), (6, "<stop>"))],
}  # fmt: skip
BYTES = (None, None, b"\n", b" a", b"a", b" ")


class Tokenizer:  # as of tokenizers
    def __init__(self, content: Any):
        self.content = content

    def to_str(self) -> str:
        return json.dumps(self.content)

    def get_vocab(self) -> dict[str, int]:
        found: dict[str, int] = self.content["model"]["vocab"]
        return found


class Fast:  # as of transformers
    eos_token_id = 6

    def __init__(self, content: Any):
        self.backend_tokenizer = Tokenizer(content)

    def convert_ids_to_tokens(self) -> None:
        pass


class Slow:
    def convert_ids_to_tokens(self) -> None:
        pass


class Encoding:  # as of tiktoken
    special_tokens_set = frozenset({"<|endoftext|>"})
    n_vocab = 6

    def encode_single_token(self, text: str) -> int:
        return {"<|endoftext|>": 5}[text]

    def decode_single_token_bytes(self, number: int) -> bytes:
        return {0: b"a", 1: b"\xff", 2: b"ab", 5: b"<|endoftext|>"}[number]


class Processor:  # as of SentencePiece
    pieces = ("<unk>", "</s>", "<0x0A>", "▁a", "a", "▁")

    def get_piece_size(self) -> int:
        return len(self.pieces)

    def id_to_piece(self, number: int) -> str:
        return self.pieces[number]

    def is_unknown(self, number: int) -> bool:
        return number == 0

    def is_control(self, number: int) -> bool:
        return number == 1

    def is_byte(self, number: int) -> bool:
        return number == 2

    def is_unused(self, number: int) -> bool:
        return False

    def eos_id(self) -> int:
        return 1


def test_tokenizers_of_other_packages_are_vocabularies() -> None:
    assert Vocabulary.of(Tokenizer(LLAMA)) == Vocabulary((*BYTES, None), end=1)
    assert Vocabulary.of(Fast(LLAMA)) == Vocabulary((*BYTES, None), end=6)
    assert Vocabulary.of(Fast(LLAMA), "</s>").end == 1
    assert Vocabulary.of(Encoding()) == Vocabulary((b"a", b"\xff", b"ab", None, None, None), 5)
    assert Vocabulary.of(Processor()) == Vocabulary(BYTES, end=1)
    mask = TokenMask("a+", Encoding())
    assert mask.mask(mask.start).tokens().tolist() == [0]


def _message(*fields: tuple[int, Any]) -> bytes:
    """Return a message of protocol buffers."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += bytes([number << 3, value])
        elif isinstance(value, float):
            found += bytes([number << 3 | 5]) + bytes(4)
        else:
            found += bytes([number << 3 | 2, len(value)]) + value
    return found


def test_models_of_sentencepiece_and_ranks_of_tiktoken_are_read(tmp_path: Path) -> None:
    kinds = (2, 3, 6, 1, 1, 1)
    path = tmp_path / "tokenizer.model"
    path.write_bytes(
        _message(
            *(
                (1, _message((1, piece.encode()), (2, 0.5), (3, kind)))
                for piece, kind in zip(Processor.pieces, kinds, strict=True)
            ),
            (2, b"trainer"),
        )
    )
    assert Vocabulary.of(path) == Vocabulary(BYTES, end=1)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InvalidArgument, match="expected a model of SentencePiece, got a damaged"):
        Vocabulary.of(path)
    path.write_bytes(
        b"".join(base64.b64encode(t) + b" %d\n" % n for n, t in ((0, b"a"), (2, b"\xff")))
    )
    assert Vocabulary.of(path) == Vocabulary((b"a", None, b"\xff"))
    path.write_bytes(b"\x80\x81")
    with pytest.raises(InvalidArgument, match="expected JSON, a model of SentencePiece or ranks"):
        Vocabulary.of(path)


def test_tokens_that_are_not_joined_as_they_are_are_refused(tmp_path: Path) -> None:
    words = {"model": {"type": "WordPiece", "vocab": {"a": 0, "##b": 1}}}
    with pytest.raises(InvalidArgument, match="got a WordPiece model, whose decoder puts spaces"):
        Vocabulary.of(Tokenizer(words))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(words))
    with pytest.raises(InvalidArgument, match=r"^tokenizer '.*': expected tokens that are joined"):
        Vocabulary.of(path)
    ended = {"model": {"type": "BPE", "vocab": {"a</w>": 0}, "end_of_word_suffix": "</w>"}}
    with pytest.raises(InvalidArgument, match="got one that ends words with '</w>'"):
        Vocabulary.of(Tokenizer(ended))
    with pytest.raises(InvalidArgument, match="Slow: expected a fast tokenizer"):
        Vocabulary.of(Slow())
    with pytest.raises(InvalidArgument, match="or a mapping to numbers, got int"):
        Vocabulary.of(5)


def test_names_of_tokens_are_not_taken_for_their_texts() -> None:
    for names in ({"Ġthe": 0, "a": 1}, ["▁the", "a"], {"<0x0A>": 0}):
        with pytest.raises(InvalidArgument, match="as tokenizers spell it; pass the tokenizer"):
            Vocabulary.of(names)


def test_logits_of_pytorch_stay_tensors_and_models_of_pydantic_are_schemas() -> None:
    torch = pytest.importorskip("torch")
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", a=(int, ...))
    mask = TokenMask(model, [*(bytes([n]) for n in range(128)), "</s>"])
    logits = torch.zeros(2, 131, dtype=torch.bfloat16, requires_grad=True)
    found = mask.apply(logits, mask.start)
    assert found.dtype == torch.bfloat16
    assert torch.isfinite(found).nonzero().tolist() == [[0, ord("{")], [1, ord("{")]]
    with pytest.raises(InvalidArgument, match=r"at least 129, got \[2, 5\]"):
        mask.apply(logits[:, :5], mask.start)
