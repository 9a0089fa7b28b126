"""The networks of chainer-trt's article in fp32, bf16 and int8: builds beside ONNX Runtime.

    python benchmarks/article.py [NAME …]

One program in C runs each, on all threads of the machine: builds of three precisions, and ONNX
Runtime's library. Both have the same 8-bit file, as ONNX Runtime's quantiser writes it (QDQ,
``MinMax``, a scale for each channel). Weights and pictures are random, for times do not depend on
them. A table of milliseconds, medians of rounds that alternate, and of ratios: ONNX Runtime's time
over hagane's, of the same precision.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from qdq import quantised

from hagane.machine import best_level, multiplies_bfloat16, usable_cores
from hagane.ship import BuildOptions, build_model
from models import make
from ship import compiled_program, models_folder, onnxruntime_library, timed

NAMES = ("VGG-16", "GoogLeNet", "ResNet-50", "YOLOv2")
RUNS, ROUNDS = 5, 5


def main() -> None:
    theirs = onnxruntime_library()
    precisions = ["fp32", *(["bf16"] if multiplies_bfloat16(best_level()) else []), "int8"]
    names = [*(f"hagane {each}" for each in precisions), "onnxruntime fp32", "onnxruntime int8"]
    print(f"{usable_cores()} threads, {ROUNDS} rounds of {RUNS} runs")
    print(f"| model | {' | '.join(names)} | fp32 | int8 |")
    print(f"|{'---|' * (len(names) + 3)}", flush=True)
    with tempfile.TemporaryDirectory() as held:
        program = compiled_program(Path(held))
        for name in sys.argv[1:] or NAMES:
            path, shapes = make(name, models_folder())
            (item,) = onnx.load(path, load_external_data=False).graph.input
            sizes = [dim.dim_value for dim in item.type.tensor_type.shape.dim]
            image = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
            files = {"fp32": path, "bf16": path, "int8": quantised(path, shapes)}
            ways = {f"onnxruntime {each}": (theirs, files[each]) for each in ("fp32", "int8")}
            for precision in precisions:
                build = Path(held) / precision
                options = BuildOptions(precision="bf16" if precision == "bf16" else "fp32")
                build_model(files[precision], build, options)
                (library,) = build.glob("*.so")
                ways[f"hagane {precision}"] = library, build
            feeds = {key: {item.name: image} for key in ways}
            found = timed(program, ways, feeds, RUNS, ROUNDS)
            cells = [f"{found[each]['run']:.1f}" for each in names]
            for precision in ("fp32", "int8"):
                ours, other = (found[f"{e} {precision}"]["run"] for e in ("hagane", "onnxruntime"))
                cells.append(f"{other / ours:.2f}")
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
