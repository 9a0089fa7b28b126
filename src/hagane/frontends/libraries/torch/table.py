"""The table of PyTorch."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.table import Table
from hagane.frontends.python.values.type_text import DTYPES
from hagane.frontends.python.values.values import DType

TORCH = Table("torch", "torch.Tensor")
TORCH.constants.update(
    {f"torch.{name}": DType(dtype) for name, dtype in DTYPES.items()}
    | {
        "torch.int": DType(ir.DataType.INT32),
        "torch.short": DType(ir.DataType.INT16),
        "torch.cfloat": DType(ir.DataType.COMPLEX64),
        "torch.cdouble": DType(ir.DataType.COMPLEX128),
        "torch.pi": 3.141592653589793,
        "torch.e": 2.718281828459045,
        "torch.inf": float("inf"),
        "torch.nan": float("nan"),
        "torch.newaxis": None,
        "torch.__version__": "2.13.0",
        **{
            f"torch.{name}": name
            for name in (
                "strided",
                "sparse_coo",
                "sparse_csr",
                "sparse_csc",
                "sparse_bsr",
                "sparse_bsc",
            )
        },
        "torch.contiguous_format": "contiguous_format",
        "torch.channels_last": "channels_last",
        "torch.channels_last_3d": "channels_last_3d",
        "torch.preserve_format": "preserve_format",
    }
)
TORCH.transparent.update(
    f"torch.{name}"
    for name in (
        "set_grad_enabled",
        "amp.custom_fwd", "amp.custom_bwd", "cuda.amp.custom_fwd", "cuda.amp.custom_bwd",
        "jit.script", "jit.export", "jit.ignore",
        "jit.unused", "jit.script_method", "compile", "profiler.record_function",
        "autograd.profiler.record_function", "autograd.profiler.profile",
        "autograd.set_detect_anomaly", "autograd.detect_anomaly",
        "autograd.function.once_differentiable", "autograd.graph.save_on_cpu",
        "compiler.allow_in_graph", "cuda.device", "compiler.disable", "set_default_dtype",
        "manual_seed", "random.manual_seed", "random.fork_rng", "backends.cudnn.flags",
        "backends.cuda.sdp_kernel", "nn.attention.sdpa_kernel",
        "utils.checkpoint.set_checkpoint_debug_enabled", "fx.wrap", "nn.utils.weight_norm",
        "nn.utils.spectral_norm", "nn.utils.parametrizations.weight_norm",
        "nn.utils.parametrizations.spectral_norm", "set_num_threads",
        "use_deterministic_algorithms",
        "_dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex",
    )
)  # fmt: skip
# Functions that PyTorch's own parser of arguments reads take NumPy's names as well; those that are
# plain Python do not.
TORCH.synonyms.update(
    {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
)
# Parameters that handlers of several functions have under another name.
_PARAMETERS = {
    "mm": {"mat2": "other"}, "bmm": {"mat2": "other"}, "dot": {"tensor": "other"},
    "mv": {"vec": "other"}, "pow": {"exponent": "other"}, "pow_": {"exponent": "other"},
    "expand": {"size": "shape"}, "repeat": {"repeats": "times"}, "sum_to_size": {"size": "shape"},
    "split_with_sizes": {"split_sizes": "split_size_or_sections"},
    "swapaxes": {"axis0": "dim0", "axis1": "dim1"}, "polar": {"abs": "real", "angle": "imag"},
    "isin": {"test_element": "test_elements", "element": "elements"},
    "tensor_split": {"tensor_indices_or_sections": "indices_or_sections"},
    "cholesky_solve": {"input": "B", "input2": "L"}, "hspmm": {"mat1": "input"},
    "orgqr": {"input": "A", "input2": "tau"}, "ormqr": {"input2": "tau", "input3": "other"},
    "_grouped_mm": {"input": "mat_a", "mat2": "mat_b"},
    "resize": {"size": "shape"}, "resize_": {"size": "shape"}, "set_": {"source": "other"},
    **{name: {"indices": "sections"} for name in ("hsplit", "vsplit", "dsplit")},
}  # fmt: skip
for _name, _own in _PARAMETERS.items():
    TORCH.parameters[f"torch.{_name}"] = TORCH.parameters[f"torch.Tensor.{_name}"] = _own
TORCH.parameters["torch.Tensor.split"] = {"split_size": "split_size_or_sections"}
TORCH.strict.add("torch.nn.functional")
TORCH.strict.update(
    f"{owner}.{name}"
    for owner in ("torch", "torch.Tensor")
    for name in (
        "split", "norm", "unique", "unique_consecutive", "stft", "istft", "einsum", "tensordot",
        "meshgrid", "cdist", "cartesian_prod", "block_diag", "broadcast_tensors", "lu",
        "atleast_1d", "atleast_2d", "atleast_3d", "unflatten", "unravel_index", "chain_matmul",
    )
)  # fmt: skip
