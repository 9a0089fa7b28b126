"""Which of ONNX's own cases of single operators run wholly native, and why others do not.

``python -m tests.conformance.wholly_native`` prints the table, with sizes as the cases have them
and with every size of an input open. Nothing is compiled: a case counts as native if no part of its
program is a reference kernel.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from hagane.errors import HaganeError
from hagane.machine import best_level
from hagane.native import Target
from hagane.native.lowering.facts import DRAWN
from hagane.native.plan.reference_only import REFERENCE_ONLY
from hagane.runtime import pipeline
from hagane.runtime.backends import NativeBackend
from hagane.runtime.settings import Settings
from tests.conformance.cases import exclusion, node_cases


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its name, and the operators that run on reference kernels with the reason."""

    name: str
    refused: tuple[tuple[str, str], ...]

    @property
    def counts(self) -> bool:
        """Whether the case is one of the operators that are meant to have kernels."""
        return all(
            tuple(operator.rsplit(":", 1)) not in REFERENCE_ONLY
            and "STRING" not in reason
            and reason != DRAWN
            for operator, reason in self.refused
        )


def opened(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose inputs have a name for every size, equal sizes apart.

    Vectors of int64 keep theirs: as shapes, bounds or axes they decide the ranks of results.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    constant = {value.name for value in made.graph.initializer}
    for number, value in enumerate(made.graph.input):
        if value.type.WhichOneof("value") == "tensor_type" and value.name not in constant:
            tensor = value.type.tensor_type
            if tensor.elem_type == onnx.TensorProto.INT64 and len(tensor.shape.dim) == 1:
                continue
            for axis, dim in enumerate(tensor.shape.dim):
                dim.dim_param = f"size_{number}_{axis}"
    for value in made.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    return made


def native_cases(*, open_sizes: bool = False) -> Iterator[Case]:
    """Yield each case that is run by the conformance tests and whose model can be planned."""
    backend = NativeBackend(Target(best_level()))
    for case in node_cases():
        if exclusion(case.name) is not None:
            continue
        model = opened(case.model) if open_sizes else case.model
        try:
            found = pipeline.read(model, Settings((backend,)))
            built = pipeline.build(found.model, found.types, Settings((backend,)), ready=False)
        except HaganeError as error:
            yield Case(case.name, (("", f"no program: {error}"),))
            continue
        refused = built.on_reference()
        yield Case(
            case.name,
            tuple(
                (f"{node.domain}:{node.op_type}", reason.reason) for node, reason in refused.items()
            ),
        )


def share(cases: list[Case]) -> tuple[int, int]:
    """Return how many cases run wholly native, and of how many that are meant to."""
    meant = [case for case in cases if case.counts]
    return sum(not case.refused for case in meant), len(meant)


def main() -> None:
    """Print the tables."""
    for title, open_sizes in (("sizes of the cases", False), ("all sizes open", True)):
        cases = list(native_cases(open_sizes=open_sizes))
        native, meant = share(cases)
        print(f"node cases that run wholly native, {title}: {native} of {meant}", end=" ")
        print(
            f"({100 * native / meant:.1f} %); {len(cases) - meant} on reference kernels by design"
        )
        reasons = Counter(item for case in cases for item in set(case.refused) if case.counts)
        for (operator, reason), count in reasons.most_common():
            print(f"  {count:4d} {operator.removeprefix(':')}: {reason[:110]}")
        if "-v" in sys.argv:
            for case in cases:
                if case.refused:
                    print("   ", case.name, case.refused)


if __name__ == "__main__":
    main()
