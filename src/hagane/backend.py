"""Where arrays lie: in this machine's memory."""

from hagane.nn.autograd.devices import (
    CpuDevice,
    Device,
    GpuDevice,
    copyto,
    get_array_module,
    get_device,
    get_device_from_array,
    using_device,
)

__all__ = [
    "CpuDevice",
    "Device",
    "GpuDevice",
    "copyto",
    "get_array_module",
    "get_device",
    "get_device_from_array",
    "using_device",
]
