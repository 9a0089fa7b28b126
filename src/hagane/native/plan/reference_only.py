"""Operators that stay on their reference kernels, and why."""

from __future__ import annotations

from collections.abc import Mapping

from hagane.native.lowering.facts import DRAWN

_TEXT = "it works on text, of which kernels know nothing"

# By domain and name.
REFERENCE_ONLY: Mapping[tuple[str, str], str] = {
    ("", "Bernoulli"): DRAWN,
    ("", "ImageDecoder"): "it decodes images, which a library of Python does",
    ("", "Multinomial"): DRAWN,
    ("", "RandomNormal"): DRAWN,
    ("", "RandomNormalLike"): DRAWN,
    ("", "RandomUniform"): DRAWN,
    ("", "RandomUniformLike"): DRAWN,
    ("", "RegexFullMatch"): _TEXT,
    ("", "StringConcat"): _TEXT,
    ("", "StringNormalizer"): _TEXT,
    ("", "StringSplit"): _TEXT,
    ("ai.onnx.ml", "CastMap"): "it reads a dictionary",
    ("ai.onnx.ml", "CategoryMapper"): _TEXT,
    ("ai.onnx.ml", "DictVectorizer"): "it reads a dictionary",
    ("ai.onnx.ml", "ZipMap"): "it makes dictionaries",
    ("com.microsoft", "Tokenizer"): _TEXT,
}
