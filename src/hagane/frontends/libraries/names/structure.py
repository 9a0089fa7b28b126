"""Names that compute nothing: members of the program's own objects, and what they hold."""

from __future__ import annotations

# Calls of the program's own objects, and containers of them; reports, which compute nothing.
STRUCTURE = frozenset(
    f"chainer.{name}"
    for name in (
        "Variable.dtype", "Variable.xp", "Variable.device", "backends.cuda.to_cpu", "cuda.to_cpu",
        "backends.cuda.to_gpu", "cuda.to_gpu",
        "Sequential.forward", "report", "reporter.report", "Link.device", "as_array",
        "get_device", "backend.get_device", "dataset.concat_examples",
        "dataset.convert.concat_examples",
        "backend.get_array_module", "backends.cuda.get_array_module", "cuda.get_array_module",
        "Link.init_scope", "Link.children",
        "Link.links", "Link.namedlinks", "Link.params", "Link.namedparams", "Link.count_params",
        "Chain.__getitem__", "using_config.__enter__", "using_config.__exit__",
        "no_backprop_mode.__enter__", "no_backprop_mode.__exit__",
        "force_backprop_mode.__enter__", "force_backprop_mode.__exit__",
        *(f"{container}.{method}" for container in ("ChainList", "Sequential")
          for method in ("__iter__", "__getitem__", "__len__")),
        *(f"links.{link}.{method}" for link in ("LSTM", "StatefulPeepholeLSTM", "GRU",
                                                "StatefulZoneoutLSTM", "StatefulGRU",
                                                "StatefulMGU")
          for method in ("reset_state", "set_state")),
    )
) | {
    "numpy.ndarray.dtype", "torch.nn.Module.to", "torch.optim.swa_utils.AveragedModel.forward"
} | frozenset(
    f"torch.nn.{name}"
    for name in (
        "Sequential.forward", "ModuleList.forward", "DataParallel.forward",
        "parallel.DataParallel.forward", "Module.__call__", "Module.__getattr__",
        *(f"Module.{method}" for method in (
            "children", "named_children", "modules", "named_modules", "parameters",
            "named_parameters", "buffers", "named_buffers", "get_submodule", "register_buffer",
            "register_parameter", "register_module", "add_module")),
        *(f"{container}.{method}" for container in ("Sequential", "ModuleList", "ModuleDict",
                                                    "ParameterList", "ParameterDict")
          for method in ("__iter__", "__getitem__", "__len__", "__contains__", "items", "keys",
                         "values", "children", "modules")),
    )
) | {"torch.Tensor.device", "torch.Tensor.layout",
     *(f"torch.Tensor.{name}" for name in (
         "is_cpu", "is_quantized", "is_nested", "is_mps", "is_meta", "is_xpu", "is_xla",
         "is_ipu", "is_maia", "is_mtia", "is_mkldnn", "is_vulkan", "is_sparse_csr",
         "is_inference")),
     "torch._C._log_api_usage_once", "torch.nn.Buffer", "torch.nn.parameter.Buffer",
     *(f"torch.{name}" for name in ("is_autocast_enabled", "is_autocast_cpu_enabled",
                                    "get_autocast_dtype", "get_autocast_cpu_dtype",
                                    "promote_types", "result_type", "can_cast")),
     "torch.is_grad_enabled", "torch.are_deterministic_algorithms_enabled",
     "torch.jit.annotate", "torch.jit.isinstance", "torch.autograd.Function.apply",
     "torch.autograd.function.Function.apply",
     *(f"torch.{manager}.{method}"
       for manager in ("utils._contextlib._DecoratorContextManager", "set_grad_enabled",
                       "autograd.set_grad_enabled", "autograd.grad_mode.set_grad_enabled")
       for method in ("__enter__", "__exit__", "__call__")),
     *(f"torch.autograd.function.FunctionCtx.{name}" for name in (
         "save_for_backward", "save_for_forward", "mark_non_differentiable", "mark_dirty",
         "set_materialize_grads"))}  # fmt: skip

__all__ = ["STRUCTURE"]
