"""Attributes that tensors of libraries have and no table knows: they are unknown, not wrong.

A test compares the names with those of the libraries. Some belong to earlier versions alone.
"""

from __future__ import annotations

LEFT_OUT: dict[str, frozenset[str]] = {
    "torch.Tensor": frozenset(
        ("apply_", "as_strided_", "as_strided_scatter", "as_subclass", "backward_hooks",
         "ccol_indices", "cdouble", "chalf", "col_indices", "const_data_ptr", "crow_indices",
         "data_ptr", "dense_dim", "dequantize", "dim_order", "eig", "frexp", "geqrf", "grad_dtype",
         "hash_tensor", "igamma", "igamma_", "igammac", "igammac_", "index", "int_repr", "ipu",
         "is_coalesced", "is_conj", "is_distributed", "is_inference", "is_neg", "is_pinned",
         "is_same_size", "is_set_to", "is_shared", "lstsq", "lu", "lu_solve", "map2_", "map_",
         "matrix_rank", "module_load", "mtia", "name", "names", "narrow_copy", "new_empty_strided",
         "nonzero_static", "orgqr", "ormqr", "output_nr", "q_per_channel_axis",
         "q_per_channel_scales", "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme",
         "reinforce", "resize_as", "resize_as_", "resize_as_sparse_", "resolve_neg",
         "retains_grad", "row_indices", "slice_inverse", "smm", "solve", "sparse_dim",
         "sparse_mask", "sparse_resize_", "sparse_resize_and_clear_", "sspaddmm", "storage",
         "storage_type", "swapdims_", "symeig", "to_mkldnn", "to_padded_tensor", "to_sparse_bsc",
         "to_sparse_bsr", "to_sparse_csc", "unsafe_chunk", "unsafe_split",
         "unsafe_split_with_sizes", "untyped_storage", "volatile", "xpu")
    ),
    "numpy.ndarray": frozenset(
        ("data", "dumps", "getfield", "newbyteorder", "resize", "setfield", "to_device", "tofile")
    ),
}  # fmt: skip


__all__ = ["LEFT_OUT"]
