"""Devices as ONNX Runtime describes them: hagane's is the CPU of this machine."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hagane import __version__
from hagane.onnxruntime.enums import (
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtHardwareDeviceType,
    OrtMemType,
)
from hagane.onnxruntime.raised import BoundError, offered_not

PROVIDER = "CPUExecutionProvider"
# The numbers of ONNX Runtime's kinds of devices, in its order of preference.
_KINDS = {"cpu": 0, "cuda": 1, "gpu": 1, "dml": 1, "webgpu": 1, "fpga": 2, "npu": 3, "cann": 3}
_VENDORS = {
    "cuda": OrtDeviceVendorId.NVIDIA,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "cann": OrtDeviceVendorId.HUAWEI,
}


class OrtDevice:
    """A device by its kind and number."""

    def __init__(self, name: str, device_id: int = 0, vendor_id: int = 0):
        self._name, self._id, self._vendor = name, int(device_id), int(vendor_id)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Return a device.

        Args:
            ort_device_name: ``cpu``; others can be named, but hold no values here.
            device_id: Its number.
            vendor_id: Its maker, if it is not the usual one of the kind.
        """
        name = ort_device_name.lower()
        known = sorted(_KINDS.keys() - {"fpga"})
        if name not in known:
            raise BoundError(f"expected a device of {', '.join(known)}, got '{ort_device_name}'")
        vendor = _VENDORS.get(name, 0) if vendor_id < 0 else vendor_id
        return OrtDevice(name, device_id, vendor)

    def device_id(self) -> int:
        """Return its number."""
        return self._id

    def device_type(self) -> int:
        """Return its kind as a number: 0 the CPU, 1 a GPU, 3 an NPU."""
        return _KINDS[self._name]

    def device_vendor_id(self) -> int:
        """Return the number of its maker on the PCI bus."""
        return self._vendor

    def device_mem_type(self) -> int:
        """Return the kind of its memory."""
        return int(OrtDeviceMemoryType.DEFAULT)

    @property
    def name(self) -> str:
        """The kind by name."""
        return self._name

    def _get_c_device(self) -> OrtDevice:
        return self


def cpu_only(device: str | OrtDevice) -> None:
    """Refuse devices other than the CPU.

    Raises:
        BoundError: It is another one, or no device at all.
    """
    name = device.name if isinstance(device, OrtDevice) else str(device).lower()
    if name not in _KINDS:
        raise BoundError(f"expected a device of {', '.join(sorted(_KINDS))}, got '{device}'")
    if name != "cpu":
        raise BoundError(
            f"expected the device 'cpu', got '{name}': hagane computes on the CPU; "
            "get_available_providers() says what there is"
        )


@dataclass(frozen=True)
class OrtHardwareDevice:
    """A device of this machine."""

    type: OrtHardwareDeviceType
    vendor: str
    vendor_id: int = 0
    device_id: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OrtEpDevice:
    """A device with the execution provider that serves it."""

    ep_name: str
    ep_vendor: str
    ep_metadata: Mapping[str, str]
    ep_options: Mapping[str, str]
    device: OrtHardwareDevice

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> OrtMemoryInfo:
        """Return the memory of the device: that of this machine."""
        return cpu_memory()

    def create_sync_stream(self) -> OrtSyncStream:
        """Refuse: the CPU has no streams."""
        raise offered_not("OrtEpDevice.create_sync_stream", "the CPU has no streams of commands")


class OrtMemoryInfo:
    """A kind of memory: its name, allocator, device and use."""

    def __init__(
        self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType
    ):
        self.name, self.allocator_type = name, allocator_type
        self.device_id, self.mem_type = device_id, mem_type
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0

    @staticmethod
    def create_v2(
        name: str,
        device_type: Any,
        vendor_id: int,
        device_id: int,
        mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """Return a kind of memory."""
        made = OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT)
        made.device_vendor_id, made.device_mem_type = vendor_id, mem_type
        return made


class OrtArenaCfg:
    """Sizes of an arena, which ``create_and_register_allocator`` takes; they have no effect."""

    _NAMES = (
        "max_mem",
        "arena_extend_strategy",
        "initial_chunk_size_bytes",
        "max_dead_bytes_per_chunk",
    )

    def __init__(self, *sizes: Any):
        given: Mapping[str, int]
        if len(sizes) == 1 and isinstance(sizes[0], Mapping):
            given = sizes[0]
        elif len(sizes) == len(self._NAMES):
            given = dict(zip(self._NAMES, sizes, strict=True))
        else:
            raise TypeError(f"OrtArenaCfg: expected four sizes or a dict, got {sizes!r}")
        for name in (*self._NAMES, *_MORE_SIZES):
            setattr(self, name, given.get(name, 0 if name == "max_mem" else -1))
        unknown = [name for name in given if name not in (*self._NAMES, *_MORE_SIZES)]
        if unknown:
            raise BoundError(f"OrtArenaCfg has no {', '.join(map(repr, unknown))}")


_MORE_SIZES = ("initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")


@dataclass(frozen=True)
class OrtExternalInitializerInfo:
    """Where a weight lies in a file beside its model."""

    filepath: str
    file_offset: int
    byte_size: int


class OrtSyncStream:
    """A stream of commands of a device, of which the CPU has none."""

    def __init__(self, *_: Any, **__: Any):
        raise offered_not("OrtSyncStream", "the CPU has no streams of commands")


def cpu_memory() -> OrtMemoryInfo:
    """Return the memory of this machine."""
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


def cpu_device() -> OrtEpDevice:
    """Return the device that models run on."""
    device = OrtHardwareDevice(OrtHardwareDeviceType.CPU, platform.machine())
    return OrtEpDevice(PROVIDER, "hagane", {"version": __version__}, {}, device)
