"""No operator without a definition, no attribute that a kernel overlooks, no unexplained gap."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.defs
import pytest

from hagane.graph import CURRENT_OPSETS
from hagane.native.plan.document import gaps, operators_document
from hagane.ops import OpDef, operators
from hagane.ops.contrib.attention.group_query import UNSUPPORTED
from hagane.ops.families import FAMILIES
from hagane.ops.registry import definitions, schema


def test_every_released_operator_is_defined() -> None:
    wanted = {
        (found.domain, found.name)
        for found in onnx.defs.get_all_schemas()
        if found.domain in ("", "ai.onnx.ml") and not found.deprecated
    }
    # Upsample and Scatter are rewritten when a model is loaded; the older forests stay.
    wanted |= {("ai.onnx.ml", f"TreeEnsemble{kind}") for kind in ("Classifier", "Regressor")}
    assert wanted - operators().keys() == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_index_of_a_family_is_its_definitions(family: str) -> None:
    listed = [
        (domain, name) for domain, names in FAMILIES[family].items() for name in names.split()
    ]
    assert sorted(listed) == sorted(op.key for op in definitions(family))


def test_no_operator_is_defined_twice() -> None:
    listed = [(d, name) for each in FAMILIES.values() for d in each for name in each[d].split()]
    assert len(listed) == len(set(listed)) == len(operators())


def test_the_current_opset_is_the_newest_that_onnx_defines() -> None:
    assert CURRENT_OPSETS[""] == onnx.defs.onnx_opset_version()
    assert CURRENT_OPSETS["ai.onnx.ml"] == onnx.defs.onnx_ml_opset_version()


@pytest.mark.parametrize("op", operators().values(), ids=lambda op: f"{op.domain}.{op.name}")
def test_a_kernel_knows_every_attribute_of_its_operator(op: OpDef) -> None:
    attributes = set(schema(op.domain, op.name).attribute_types)
    if op.name == "GroupQueryAttention":  # its type rule refuses them
        attributes -= set(UNSUPPORTED)
    if "attributes" not in op.keywords:
        assert attributes - op.keywords == set()


def test_every_gap_has_a_reason() -> None:
    for op, facet in gaps():
        assert len(facet.reason) > 10, op.name
        assert "not written" not in facet.reason, op.name


def test_the_document_is_fresh() -> None:
    path = Path(__file__).parents[2] / "docs" / "operators.md"
    assert path.read_text(encoding="utf-8") == operators_document(), (
        "run: python -m hagane.native.plan.document > docs/operators.md"
    )
