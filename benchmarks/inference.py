"""Latency beside ONNX Runtime and OpenVINO, on the models of ``models.py``.

``python benchmarks/inference.py [NAME …] [--threads 1 2] [--vs onnxruntime openvino] [--rounds 5]``
prints a Markdown table of medians and ratios, and their geometric means. Each engine runs in a
process of its own, rounds alternate, precision is fp32. PyTorch is needed to write the models.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument
from hagane.runtime.bench import compare
from hagane.runtime.options import Precision
from models import NAMES, make


def timed(
    path: Path,
    others: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    threads: int,
    rounds: int,
    seconds: float,
    precision: Precision = "fp32",
) -> dict[str, Any]:
    """Return the comparison with the engines that can run the model; others are named."""
    able = list(others)
    while True:
        try:
            return compare(
                path, ("hagane", *able), shapes, threads, rounds, seconds, precision=precision
            )
        except InvalidArgument as error:
            failed = next((name for name in able if str(error).startswith(name)), None)
            if failed is None:
                raise
            print(error, file=sys.stderr)
            able.remove(failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--vs", nargs="*", default=["onnxruntime", "openvino"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument(
        "--folder", type=Path, default=Path.home() / ".cache" / "hagane" / "benchmarks"
    )
    arguments = parser.parse_args()
    header = ["model", "threads", "hagane ms", "share of peak"]
    print("|", " | ".join([*header, *(f"{other} ÷ hagane" for other in arguments.vs)]), "|")
    print("|", " | ".join(["---"] * (len(header) + len(arguments.vs))), "|", flush=True)
    ratios: dict[tuple[int, str], list[float]] = {}
    for threads in arguments.threads:
        for name in arguments.names:
            path, shapes = make(name, arguments.folder)
            found = timed(
                path,
                arguments.vs,
                shapes,
                threads,
                arguments.rounds,
                arguments.seconds,
                arguments.precision,
            )
            print(json.dumps(found), file=sys.stderr)
            own = next(row for row in found["results"] if row["engine"] == "hagane")
            cells = [name, str(threads), f"{own['median_ms']:.3f}"]
            share = own["peak_share"]
            cells.append("" if share is None else f"{share:.0%}")
            for other in arguments.vs:
                ratio = found["ratios"].get(f"{other}/hagane")
                cells.append("" if ratio is None else f"{ratio:.2f}")
                if ratio is not None:
                    ratios.setdefault((threads, other), []).append(ratio)
            print("|", " | ".join(cells), "|", flush=True)
    for (threads, other), values in ratios.items():
        mean = statistics.geometric_mean(values)
        print(
            f"{other} ÷ hagane, {threads} threads: geometric mean {mean:.2f}, "
            f"worst {min(values):.2f}, {len(values)} models"
        )


if __name__ == "__main__":
    main()
