"""Count which of ONNX's conformance cases hagane and ONNX Runtime pass, side by side.

python tests/outside/conformance.py
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("ORT_LOGGING_LEVEL", "4")

import numpy as np
import onnx
import onnxruntime
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.cases import absolute_tolerance, arrays, exclusion, node_cases

from hagane.onnx_backend import prepare

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def data_sets(case: Any, model: onnx.ModelProto) -> list[tuple[list[Any], list[Any]]]:
    """Return inputs and outputs of a case, from memory or from its folder."""
    if case.data_sets is not None:
        return [(arrays(inputs), arrays(outputs)) for inputs, outputs in case.data_sets]
    result = []
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        sides: list[list[Any]] = []
        for side, values in (("input", model.graph.input), ("output", model.graph.output)):
            found: list[Any] = []
            for index in range(len(list(folder.glob(f"{side}_*.pb")))):
                Runner._load_proto(None, folder / f"{side}_{index}.pb", found, values[index].type)
            sides.append(found)
        result.append((sides[0], sides[1]))
    return result


def run_onnxruntime(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    # Its reader refuses the newest file format whatever is in the file.
    older = onnx.ModelProto()
    older.CopyFrom(model)
    older.ir_version = min(model.ir_version, 10)
    model = older
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [item.name for item in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=False)))


def run_hagane(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    return list(prepare(model).run(inputs))


def passes(engine: Any, case: Any, model: onnx.ModelProto) -> bool:
    """Whether an engine gives every expected output, within ONNX's own tolerance."""
    try:
        for inputs, expected in data_sets(case, model):
            atol = absolute_tolerance(case)
            Runner.assert_similar_outputs(expected, engine(model, inputs), case.rtol, atol)
    except Exception:
        return False
    return True


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    np.seterr(all="ignore")
    engines = {"hagane": run_hagane, "onnxruntime": run_onnxruntime}
    total: Counter[str] = Counter()
    passed: Counter[tuple[str, str]] = Counter()
    left_out: Counter[str] = Counter()
    for kind in KINDS:
        for case in node_cases() if kind == "node" else load_model_tests(kind=kind):
            reason = exclusion(case.name)
            if reason is not None:
                left_out[reason] += 1
                continue
            model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
            total[kind] += 1
            for name, engine in engines.items():
                passed[name, kind] += passes(engine, case, model)
    print(f"{'cases':20}{'total':>8}" + "".join(f"{name:>14}" for name in engines))
    for kind in KINDS:
        counts = "".join(f"{passed[name, kind]:>14}" for name in engines)
        print(f"{kind:20}{total[kind]:>8}{counts}")
    for reason, count in left_out.items():
        print(f"left out {count}: {reason}")
    if any(passed["hagane", kind] != total[kind] for kind in KINDS):
        sys.exit("hagane fails some of the cases")


if __name__ == "__main__":
    main()
