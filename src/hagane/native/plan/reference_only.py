"""Operators that stay on their reference kernels, and why."""

from __future__ import annotations

from collections.abc import Mapping

_TEXT = "it works on text, of which kernels know nothing"
_RANDOM = "it draws at random, and ONNX fixes no stream of numbers"

# By domain and name.
REFERENCE_ONLY: Mapping[tuple[str, str], str] = {
    ("", "Bernoulli"): _RANDOM,
    ("", "ImageDecoder"): "it decodes images, which a library of Python does",
    ("", "Multinomial"): _RANDOM,
    ("", "RandomNormal"): _RANDOM,
    ("", "RandomNormalLike"): _RANDOM,
    ("", "RandomUniform"): _RANDOM,
    ("", "RandomUniformLike"): _RANDOM,
    ("", "RegexFullMatch"): _TEXT,
    ("", "StringConcat"): _TEXT,
    ("", "StringNormalizer"): _TEXT,
    ("", "StringSplit"): _TEXT,
    ("ai.onnx.ml", "CastMap"): "it reads a dictionary",
    ("ai.onnx.ml", "CategoryMapper"): _TEXT,
    ("ai.onnx.ml", "DictVectorizer"): "it reads a dictionary",
    ("ai.onnx.ml", "ZipMap"): "it makes dictionaries",
}
