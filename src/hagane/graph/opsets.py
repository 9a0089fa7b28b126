"""The version of each domain whose operators a graph holds once it is legalised."""

from __future__ import annotations

from collections.abc import Mapping

CURRENT_OPSETS: Mapping[str, int] = {
    "": 28,
    "ai.onnx.ml": 5,
    "com.microsoft": 1,
    "com.microsoft.nchwc": 1,
    "hagane": 1,
}
