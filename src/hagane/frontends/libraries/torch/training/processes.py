"""``torch.distributed``, saved files, and settings of the process."""

from __future__ import annotations

import multiprocessing

from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Host,
    Real,
    Value,
)

TORCH.constants.update(
    {f"torch.distributed.ReduceOp.{name}": name for name in ("SUM", "AVG", "MAX", "MIN", "PRODUCT")}
    | {f"torch.backends.cudnn.{name}": False for name in ("benchmark", "deterministic", "enabled")}
    | {"torch.version.cuda": None}
    | {
        f"torch.multiprocessing.{name}": Host(getattr(multiprocessing, name))
        for name in ("Process", "Queue", "SimpleQueue", "JoinableQueue", "Pool", "cpu_count")
    }
)


@TORCH.function(
    "distributed.init_process_group", "distributed.destroy_process_group",
    "distributed.all_reduce", "distributed.broadcast", "distributed.all_gather",
    "distributed.reduce", "distributed.all_gather_object", "distributed.broadcast_object_list",
    "cuda.reset_peak_memory_stats", "autograd.set_detect_anomaly", "set_default_dtype",
    "set_num_interop_threads", "cuda.ipc_collect", "multiprocessing.set_start_method",
    "multiprocessing.set_sharing_strategy", "backends.cuda.enable_flash_sdp", "set_flush_denormal",
    "autograd.profiler.profile", "_dynamo.reset",
)  # fmt: skip
def nothing(t: Core, *_: Value, **__: Value) -> Value:
    """Return None."""
    return None


@TORCH.function("load", "jit.load", "hub.load", "hub.load_state_dict_from_url")
def load(t: Core, f: Value = None, *_: Value, **__: Value) -> Value:
    """Return the content of a file, which nothing is known about."""
    return t.loaded("a file")


@TORCH.function("autograd.gradcheck", "autograd.gradgradcheck")
def gradcheck(t: Core, func: Value, inputs: Value, *_: Value, **__: Value) -> Value:
    """Call a function once; its gradients are not compared."""
    given = inputs if isinstance(inputs, list | tuple) else [inputs]
    t.call(func, [t.wrap(x) for x in given], {})
    return True


@TORCH.function("cuda.max_memory_allocated", "cuda.memory_allocated", "cuda.memory_reserved",
                "cuda.max_memory_reserved")  # fmt: skip
def bytes_used(t: Core, *_: Value, **__: Value) -> Value:
    """Return a number of bytes."""
    return t.emit.fresh("bytes")


@TORCH.function("cuda.get_device_name")
def device_name(t: Core, *_: Value) -> Value:
    """Return the name of a device."""
    return "cuda"


__all__ = ["Real", "load"]
