"""How long a check takes beside ``torch.export`` and a forward pass, in one run.

Run: ``python benchmarks/check.py``. Needs torch. BERT-base and GoogLeNet of the test corpus, full
size, from source with symbolic sizes; each figure is the median of alternating rounds, in a warm
process: importing torch, or hagane, is not counted.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hagane.checking import Request, check_source

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
ROUNDS = 5
MODELS = {
    "BERT-base": (
        "bert.py", "BertModel", "BertModel(BertConfig()).eval()",
        {"input_ids": "int64[batch, seq]"}, lambda: (torch.zeros(1, 128, dtype=torch.int64),),
    ),
    "GoogLeNet": (
        "googlenet.py", "GoogLeNet", "GoogLeNet(1000).eval()",
        {"x": "float32[batch, 3, height, width]"}, lambda: (torch.zeros(1, 3, 224, 224),),
    ),
}  # fmt: skip


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    from tests.models.case import load

    for name, (file, target, make, inputs, example) in MODELS.items():
        path = ROOT / "tests" / "models" / "torch" / file
        model = eval(make, vars(load(path)))
        arguments = example()
        request = Request(path, target, inputs, make)
        report = check_source(request)
        assert report.ok, report.errors
        ways = {
            "check": lambda request=request: check_source(request),
            "torch.export": lambda model=model, arguments=arguments: torch.export.export(
                model, arguments
            ),
            "forward": lambda model=model, arguments=arguments: model(*arguments),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        with torch.no_grad():
            for _ in range(ROUNDS):
                for way, run in ways.items():
                    seconds[way].append(timed(run))
        medians = {way: statistics.median(found) for way, found in seconds.items()}
        print(
            f"{name}: {len(report.types)} types, check {medians['check']:.2f} s; "
            f"torch.export / check {medians['torch.export'] / medians['check']:.1f}, "
            f"forward / check {medians['forward'] / medians['check']:.2f}"
        )


if __name__ == "__main__":
    main()
