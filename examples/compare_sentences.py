"""Compare sentences by meaning: a paraphrase has to be nearer than an unrelated sentence.

The model is that of ``minilm.py``, which names its licence.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from minilm import minilm, model_folder

import hagane

SENTENCES = (
    "A man is playing a guitar on the street.",
    "Someone performs music with a guitar outdoors.",
    "The stock market fell sharply on Monday.",
)


class WordPiece:
    """BERT's tokenizer: lower case, split at punctuation, longest known pieces of each word."""

    def __init__(self, words: list[str]):
        self._ids = {word: index for index, word in enumerate(words)}

    def encode(self, text: str) -> list[int]:
        """Return token ids with the marks of beginning and end."""
        plain = unicodedata.normalize("NFD", text.lower())
        plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
        ids = [self._ids["[CLS]"]]
        for word in re.findall(r"\w+|[^\w\s]", plain):
            ids += self._pieces(word)
        return [*ids, self._ids["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        ids, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                found = self._ids.get(prefix + word[start:end])
                if found is not None:
                    ids.append(found)
                    start = end
                    break
            else:
                return [self._ids["[UNK]"]]
        return ids


def main() -> None:
    vocabulary = (model_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = WordPiece(vocabulary)
    encoded = [tokenizer.encode(sentence) for sentence in SENTENCES]
    length = max(map(len, encoded))
    ids = np.array([row + [0] * (length - len(row)) for row in encoded])
    mask = np.array([[1] * len(row) + [0] * (length - len(row)) for row in encoded])
    session = hagane.InferenceSession(minilm())
    (vectors,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    near, far = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    print(f"paraphrase: {near:.3f}")
    print(f"unrelated:  {far:.3f}")
    assert near > 0.5 > far + 0.3, "the paraphrase is nearer by far"


if __name__ == "__main__":
    main()
