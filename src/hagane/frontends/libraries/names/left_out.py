"""Attributes that libraries' objects have and no table knows: they are unknown, not wrong.

A test compares the names with those of the libraries. Some belong to earlier versions alone.
"""

from __future__ import annotations

LEFT_OUT: dict[str, frozenset[str]] = {
    "torch.Tensor": frozenset(
        ("full_tensor", "to_local", "device_mesh", "placements", "redistribute",  # of DTensor
         "apply_", "as_strided_", "as_strided_scatter", "as_subclass", "backward_hooks",
         "ccol_indices", "chalf", "col_indices", "const_data_ptr", "crow_indices",
         "data_ptr", "dense_dim", "dequantize", "dim_order", "eig", "grad_dtype",
         "hash_tensor", "igamma", "igamma_", "igammac", "igammac_", "index", "int_repr", "ipu",
         "is_coalesced", "is_conj", "is_distributed", "is_inference", "is_neg", "is_pinned",
         "is_same_size", "is_set_to", "is_shared", "lstsq", "map2_", "map_",
         "matrix_rank", "module_load", "mtia", "name", "names", "new_empty_strided",
         "orgqr", "output_nr", "q_per_channel_axis",
         "q_per_channel_scales", "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme",
         "reinforce", "resize_as", "resize_as_sparse_",
         "retains_grad", "row_indices", "slice_inverse", "smm", "solve", "sparse_dim",
         "sparse_mask", "sparse_resize_", "sparse_resize_and_clear_", "sspaddmm", "storage",
         "storage_type", "swapdims_", "symeig", "to_mkldnn", "to_padded_tensor", "to_sparse_bsc",
         "to_sparse_bsr", "to_sparse_csc",          "untyped_storage", "volatile", "xpu")
    ),
    "numpy.ndarray": frozenset(
        ("data", "dumps", "getfield", "newbyteorder", "resize", "setfield", "to_device", "tofile")
    ),
    "torch.nn.Module": frozenset(
        ("T_destination", "call_super_init", "dump_patches", "get_extra_state", "ipu", "mtia",
         "set_extra_state", "set_submodule", "to_empty", "xpu",
         # Of layers that are made when they are first called, and of several kinds.
         "all_weights", "check_forward_args", "check_hidden_size", "check_input",
         "cls_to_become", "get_expected_cell_size", "get_expected_hidden_size",
         "has_uninitialized_params", "initialize_parameters", "merge_masks", "permute_hidden",
         "activation_relu_or_gelu", "_flat_weights", "_flat_weights_names")
    ),
    "torch.nn.DataParallel": (_PARALLEL := frozenset(
        ("broadcast_buffers", "gather", "join", "join_device", "join_hook", "join_process_group",
         "parallel_apply", "register_comm_hook", "replicate", "scatter", "to_kwargs",
         "will_sync_module_buffers")
    )),
    "torch.nn.parallel.DataParallel": _PARALLEL,
    "torch.nn.parallel.DistributedDataParallel": _PARALLEL,
    "torch.nn.parallel.distributed.DistributedDataParallel": _PARALLEL,
    "torch.nn.ParameterDict": frozenset(("copy", "fromkeys", "popitem", "setdefault")),
    "torch.nn.utils.rnn.PackedSequence": frozenset(
        ("byte", "char", "count", "cpu", "cuda", "double", "float", "half", "index", "int",
         "is_cuda", "is_pinned", "long", "pin_memory", "short", "to")
    ),
    "torch.Generator": frozenset(
        ("clone_state", "device", "get_offset", "get_state", "graphsafe_get_state",
         "graphsafe_set_state", "initial_seed", "seed", "set_offset", "set_state")
    ),
    "torch.distributions.Distribution": frozenset(
        ("arg_constraints", "enumerate_support", "has_enumerate_support",
         "param_shape", "precision_matrix", "set_default_validate_args", "support")
    ),
    "torch.distributions.Transform": (_TRANSFORM := frozenset(
        ("bijective", "codomain", "domain", "event_dim", "forward_shape", "inv", "inverse_shape",
         "sign", "with_cache")
    )),
    "torch.distributions.transforms.Transform": _TRANSFORM,
    "torch.optim.Optimizer": frozenset(
        ("OptimizerPostHook", "OptimizerPreHook", "profile_hook_step",
         "register_load_state_dict_post_hook", "register_load_state_dict_pre_hook",
         "register_state_dict_post_hook", "register_state_dict_pre_hook", "share_memory")
    ),
    "torch.optim.lr_scheduler.LRScheduler": frozenset(
        ("in_cooldown", "recursive_undo", "scale_fn")
    ),
    "torch.utils.data.Dataset": (_DATA := frozenset(("cummulative_sizes", "cumsum"))),
    "torch.utils.data.dataset.Dataset": _DATA,
    "torch.utils.data.DataLoader": (_LOADER := frozenset(
        ("check_worker_number_rationality", "multiprocessing_context")
    )),
    "torch.utils.data.dataloader.DataLoader": _LOADER,
    "torch.utils.hooks.RemovableHandle": frozenset(("next_id",)),
    "torch.autograd.function.FunctionCtx": frozenset(("mark_shared_storage",)),
}  # fmt: skip


__all__ = ["LEFT_OUT"]
