"""Bring a model of any opset from 7 on to the one current form of every operator.

Only versions that changed an operator's *form* matter (an attribute became an input, a default
changed, a meaning changed); widening the list of element types needs nothing. Each such change
is one function in one of the modules beside this one, listed in ``ADAPTERS`` with the opset that
brought it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import onnx
import onnx.defs
import onnx_ir as ir

from hagane.errors import TypeInferenceError, UnsupportedModel
from hagane.graph.opsets import CURRENT_OPSETS
from hagane.graph.verify import describe
from hagane.graph.walk import all_graphs, all_nodes
from hagane.ops.builder import interpreting
from hagane.ops.schema import onnx_schema
from hagane.passes.legalise import broadcast, inputs, meaning, ml, resize, scan
from hagane.passes.legalise.outputs import part_outputs
from hagane.passes.legalise.rewrite import Site

Adapter: TypeAlias = Callable[[Site], None]

OLDEST_OPSET = 6
_ALWAYS = 10**6  # an opset that no form of an operator is new in

_REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)

_BINARY = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")

# (domain, operator) -> the opsets that changed its form, in order, with the rewriting.
ADAPTERS: Mapping[tuple[str, str], tuple[tuple[int, Adapter], ...]] = {
    ("", "BatchNormalization"): (
        (7, broadcast.training_attributes_7),
        (14, meaning.batch_normalization_14),
    ),
    ("", "Clip"): ((11, inputs.clip_11),),
    ("", "DFT"): ((20, inputs.dft_20),),
    ("", "Dropout"): ((7, broadcast.training_attributes_7), (12, inputs.dropout_12)),
    ("", "Gemm"): ((7, broadcast.gemm_7),),
    ("", "GridSample"): ((20, meaning.grid_sample_20),),
    ("", "GroupNormalization"): ((21, meaning.group_normalization_21),),
    ("", "Hardmax"): ((13, meaning.softmax_13),),
    ("", "LogSoftmax"): ((13, meaning.softmax_13),),
    ("", "Loop"): ((_ALWAYS, meaning.loop_scalars),),
    ("", "PRelu"): ((7, broadcast.prelu_7),),
    ("", "Pad"): ((11, inputs.pad_11),),
    ("", "ReduceSum"): ((13, inputs.axes_to_input),),
    ("", "Resize"): ((11, resize.resize_11),),
    ("", "RoiAlign"): ((16, meaning.roi_align_16),),
    ("", "Scan"): ((9, scan.scan_9),),
    ("", "Scatter"): ((11, meaning.scatter_11),),
    ("", "Slice"): ((10, inputs.slice_10),),
    ("", "Softmax"): ((13, meaning.softmax_13),),
    ("", "Split"): ((13, inputs.split_13), (18, inputs.split_18)),
    ("", "Squeeze"): ((13, inputs.axes_to_input),),
    ("", "TopK"): ((10, inputs.topk_10),),
    ("", "Unsqueeze"): ((13, inputs.axes_to_input),),
    ("", "Upsample"): ((_ALWAYS, resize.upsample),),
    **{("", name): ((7, broadcast.binary_7),) for name in _BINARY},
    **{("", name): ((7, broadcast.recurrent_7),) for name in ("GRU", "LSTM", "RNN")},
    **{("", name): ((18, inputs.axes_to_input),) for name in _REDUCTIONS},
    ("ai.onnx.ml", "LabelEncoder"): ((2, ml.label_encoder_2),),
}


def _form(node: ir.Node, version: int) -> onnx.defs.OpSchema | None:
    """Return the schema of a node's operator in an opset, if it had one."""
    try:
        return onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return None


def _check_names(node: ir.Node, version: int) -> None:
    """Refuse an attribute that the operator did not have in the opset of the model."""
    schema = _form(node, version)
    if schema is None:
        return
    for name in node.attributes:
        if name not in schema.attributes:
            known = ", ".join(sorted(schema.attributes)) or "none"
            raise TypeInferenceError(
                f"{describe(node)}: unknown attribute '{name}'; its attributes are: {known} "
                f"(opset {version})"
            )


def _check_form(node: ir.Node, version: int) -> None:
    """Refuse a node that is none of its opset, before a rewrite drops what is wrong about it."""
    schema = _form(node, version)
    if schema is None:
        return
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in node.attributes:
            raise TypeInferenceError(
                f"{describe(node)}: expected the attribute '{name}', which is absent"
            )
    count = len(node.inputs)
    while count and node.inputs[count - 1] is None:
        count -= 1
    least, most = schema.min_input, schema.max_input
    if len(node.inputs) < least or count > most:
        span = str(least) if least == most else f"{least} to {most}"
        raise TypeInferenceError(
            f"{describe(node)} (opset {version}): expected {span} inputs, got {count}"
        )


def legalise(model: ir.Model) -> None:
    """Rewrite ``model`` in place to the current opset of every domain it imports.

    Outputs that its graph lists again become outputs of their own.

    Raises:
        UnsupportedModel: The model imports an opset that is older or newer than those known, or
            uses an old form that has no current equivalent; every problem is listed.
    """
    opsets = {_domain(domain): version for domain, version in model.opset_imports.items()}
    problems = [
        *_version_problems(model),
        *_opset_problems(opsets),
        *_too_old(model.graph, opsets.get("", OLDEST_OPSET)),
    ]
    if problems:
        raise UnsupportedModel(problems)
    # Bodies come before the graphs around them, so that rewrites see legal ones.
    for graph in reversed(list(all_graphs(model.graph))):
        _normalise_domains(graph)
        for node in list(graph):
            version = opsets.get(node.domain, CURRENT_OPSETS.get(node.domain, 0))
            adapters = ADAPTERS.get((node.domain, node.op_type), ())
            needed = [adapt for since, adapt in adapters if version < since]
            if node.attributes and version < CURRENT_OPSETS.get(node.domain, 0):
                _check_names(node, version)
            if needed:
                _check_form(node, version)
            _drop_empty_padding(node)
            for adapt in needed:
                problem = _apply(adapt, Site(node, graph, version))
                problems += [problem] if problem else []
            _drop_absent(node)
    if problems:
        raise UnsupportedModel(problems)
    for domain in list(model.opset_imports):
        if _domain(domain) != domain:
            del model.opset_imports[domain]
    for domain in opsets:
        model.opset_imports[domain] = CURRENT_OPSETS.get(domain, opsets[domain])
    if len({value.name for value in model.graph.outputs}) < len(model.graph.outputs):
        part_outputs(model.graph)


def _drop_absent(node: ir.Node) -> None:
    """Drop absent inputs at the end that the operator does not have."""
    if node.inputs and node.inputs[-1] is None:
        schema = onnx_schema(node.domain, node.op_type)
        count = len(node.inputs)
        while schema and count > schema.max_inputs and node.inputs[count - 1] is None:
            count -= 1
        node.resize_inputs(count)


def _drop_empty_padding(node: ir.Node) -> None:
    """Some exporters write ``auto_pad=""`` for NOTSET."""
    attribute = node.attributes.get("auto_pad")
    if attribute is not None and attribute.value == "":
        del node.attributes["auto_pad"]


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _normalise_domains(graph: ir.Graph) -> None:
    for node in graph:
        if node.domain == "ai.onnx":
            node.domain = ""


def _version_problems(model: ir.Model) -> Iterator[str]:
    if (model.ir_version or 0) > onnx.IR_VERSION:
        yield f"IR version {model.ir_version}: expected at most {onnx.IR_VERSION}"


def _opset_problems(opsets: Mapping[str, int]) -> Iterator[str]:
    for domain, version in opsets.items():
        newest = CURRENT_OPSETS.get(domain)
        if newest is not None and not 1 <= version <= newest:
            yield f"opset {version} of domain '{domain or 'ai.onnx'}': expected 1 to {newest}"


def _too_old(root: ir.Graph, version: int) -> Iterator[str]:
    """Yield the nodes whose form changed between an opset below the oldest and that one."""
    if not 1 <= version < OLDEST_OPSET:
        return
    for node in all_nodes(root):
        if node.domain in ("", "ai.onnx") and not _unchanged(node.op_type, version):
            yield (
                f"{describe(node)}: opset {version} has another form of it; models from "
                f"opset {OLDEST_OPSET} on are supported"
            )


def _unchanged(op_type: str, version: int) -> bool:
    try:
        then = onnx.defs.get_schema(op_type, version, "")
        oldest = onnx.defs.get_schema(op_type, OLDEST_OPSET, "")
    except onnx.defs.SchemaError:
        return False
    return bool(then.since_version == oldest.since_version)


def _apply(adapt: Adapter, site: Site) -> str | None:
    try:
        with interpreting(site.nodes):
            adapt(site)
    except UnsupportedModel as error:
        return error.problems[0]
    return None
