"""Options of sessions and runs, as strict about names and types as ONNX Runtime's."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane import runtime
from hagane.onnxruntime.adapters import LoraAdapter
from hagane.onnxruntime.devices import OrtEpDevice
from hagane.onnxruntime.enums import ExecutionOrder, OrtExecutionProviderDevicePolicy
from hagane.onnxruntime.raised import offered_not
from hagane.onnxruntime.values import OrtValue
from hagane.runtime import ExecutionMode, GraphOptimizationLevel

_SESSION: dict[str, type] = {
    "enable_cpu_mem_arena": bool,
    "enable_mem_pattern": bool,
    "enable_mem_reuse": bool,
    "enable_profiling": bool,
    "execution_mode": ExecutionMode,
    "execution_order": ExecutionOrder,
    "graph_optimization_level": GraphOptimizationLevel,
    "inter_op_num_threads": int,
    "intra_op_num_threads": int,
    "log_severity_level": int,
    "log_verbosity_level": int,
    "logid": str,
    "optimized_model_filepath": str,
    "profile_file_prefix": str,
    "use_deterministic_compute": bool,
    "use_per_session_threads": bool,
}
_RUN: dict[str, type] = {
    "log_severity_level": int,
    "log_verbosity_level": int,
    "logid": str,
    "only_execute_path_to_fetches": bool,
    "terminate": bool,
}


# Numbers of options have 32 bits.
_FIRST_TOO_LARGE = 2**31


def _typed(options: object, kinds: Mapping[str, type], name: str, value: Any) -> Any:
    """Return the value of an attribute; refuse another type than the attribute's.

    Any number and None count as truth values, as in ONNX Runtime's interface.
    """
    expected = kinds.get(name)
    if expected is None:
        return value
    if expected is bool and (value is None or isinstance(value, int | float | np.generic)):
        return bool(value)
    if expected is int and isinstance(value, int | np.integer | np.bool_):
        if isinstance(value, enum.Enum):
            raise _mistyped(options, name, expected, value)
        if not -_FIRST_TOO_LARGE <= int(value) < _FIRST_TOO_LARGE:
            raise _mistyped(options, name, expected, value)
        return int(value)
    if not isinstance(value, expected):
        raise _mistyped(options, name, expected, value)
    return value


def _mistyped(options: object, name: str, expected: type, value: Any) -> TypeError:
    return TypeError(
        f"{type(options).__name__}.{name}: expected {expected.__name__}, got {value!r} "
        f"({type(value).__name__})"
    )


def _text(where: str, *values: Any) -> None:
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{where}: expected str, got {value!r} ({type(value).__name__})")


_LONGEST_KEY, _LONGEST_ENTRY = 1024, 8192


def _entry(where: str, key: Any, value: Any) -> None:
    """Refuse a key or a value that ONNX Runtime does not keep."""
    _text(where, key, value)
    if not 0 < len(key) <= _LONGEST_KEY:
        raise RuntimeError(
            f"{where}: expected a key of 1 to {_LONGEST_KEY} characters, got {key!r}"
        )
    if len(value) > _LONGEST_ENTRY:
        raise RuntimeError(
            f"{where} '{key}': expected at most {_LONGEST_ENTRY} characters, got {len(value)}"
        )


def _entries_told(entries: Mapping[str, str]) -> str:
    return f"it has {', '.join(map(repr, entries)) or 'none'}"


class SessionOptions(runtime.SessionOptions):
    """Settings of a session.

    Those of hagane's own (``precision``, ``tune``, …) are there too. Attributes that do not exist,
    and values of another type, are refused.
    """

    use_per_session_threads: bool

    def __init__(self) -> None:
        own: dict[str, Any] = {
            "execution_order": ExecutionOrder.DEFAULT,
            "use_per_session_threads": True,
            "providers": [],
            "initializers": {},
            "files": {},
        }
        self.__dict__.update(own)
        super().__init__(log_severity_level=-1, profile_file_prefix="onnxruntime_profile_")

    def __setattr__(self, name: str, value: Any) -> None:
        value = _typed(self, _SESSION, name, value)
        if name in ("execution_order", "use_per_session_threads"):
            self.__dict__[name] = value
            return
        super().__setattr__(name, value)

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Fix the named dimension of the inputs to a size."""
        _text("add_free_dimension_override_by_name", dim_name)
        size = operator.index(dim_value)
        super().add_free_dimension_override_by_name(dim_name, size)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep a setting by key; settings that begin with ``hagane.`` have an effect."""
        _entry("SessionOptions.add_session_config_entry", key, value)
        super().add_session_config_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """Return a setting kept by key.

        Raises:
            RuntimeError: There is none.
        """
        if key not in self.entries:
            raise RuntimeError(
                f"SessionOptions does not have configuration with key: {key}; "
                f"{_entries_told(self.entries)}"
            )
        return self.entries[key]

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Put a value in the place of an initializer of the model."""
        self.__dict__["initializers"][name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Put values in the place of initializers whose weights lie beside the model."""
        if len(names) != len(values):
            raise RuntimeError(
                f"add_external_initializers: expected as many values as names ({len(names)}), "
                f"got {len(values)}"
            )
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[Any], lengths: Sequence[int]
    ) -> None:
        """Give the contents of files of weights that the model names, so that none is opened.

        Args:
            names: The files, as the model names them.
            buffers: Their bytes.
            lengths: How many of these belong to the file.
        """
        if not len(names) == len(buffers) == len(lengths):
            raise RuntimeError(
                "add_external_initializers_from_files_in_memory: expected as many buffers and "
                f"lengths as names ({len(names)}), got {len(buffers)} and {len(lengths)}"
            )
        for name, buffer, length in zip(names, buffers, lengths, strict=True):
            self.__dict__["files"][name] = memoryview(buffer).cast("B")[:length]

    @property
    def replaced(self) -> dict[str, OrtValue]:
        """The values that take the place of initializers."""
        return dict(self.__dict__["initializers"])

    @property
    def held_files(self) -> dict[str, memoryview]:
        """The contents of files of weights."""
        return dict(self.__dict__["files"])

    def add_provider(self, provider_name: str, provider_options: Mapping[str, str]) -> None:
        """Prefer an execution provider; models run on the CPU."""
        _text("add_provider", provider_name)
        self.__dict__["providers"].append(provider_name)

    def add_provider_for_devices(
        self, devices: Sequence[OrtEpDevice], provider_options: Mapping[str, str]
    ) -> None:
        """Prefer the execution provider of devices of ``get_ep_devices``."""
        for device in devices:
            self.add_provider(device.ep_name, provider_options)

    def has_providers(self) -> bool:
        """Whether execution providers were added."""
        return bool(self.__dict__["providers"])

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy) -> None:
        """Prefer a kind of device; there is the CPU."""

    def set_provider_selection_policy_delegate(self, delegate: Callable[..., Any]) -> None:
        """Refuse: a delegate would choose among devices of which there is one."""
        raise offered_not(
            "SessionOptions.set_provider_selection_policy_delegate",
            "models run on the CPU; SessionOptions.backends of hagane adds backends",
        )

    def register_custom_ops_library(self, path: str) -> None:
        """Refuse: libraries of operators are made for ONNX Runtime's C interface."""
        raise offered_not(
            "SessionOptions.register_custom_ops_library",
            f"'{path}' is made for ONNX Runtime's C interface; give the operators as functions of "
            "the model (onnx.FunctionProto) or as a backend (SessionOptions.backends, "
            "docs/backends.md)",
        )

    def set_ep_context_data_read_func(
        self, read_func: Callable[..., Any], max_data_size: int
    ) -> None:
        """Refuse: hagane reads no models that another execution provider compiled."""
        raise offered_not(
            "SessionOptions.set_ep_context_data_read_func",
            "models that an execution provider compiled run on that provider only; give the "
            "model that it was made of",
        )

    def clear_ep_context_data_read_func(self) -> None:
        """Forget the reader of compiled models: there is none."""

    def set_load_cancellation_flag(self, value: bool) -> None:
        """Refuse to load: a session with these options is not made."""
        self.__dict__["cancelled"] = bool(value)

    @property
    def cancelled(self) -> bool:
        """Whether loading was cancelled."""
        return bool(self.__dict__.get("cancelled", False))


class RunOptions(runtime.RunOptions):
    """Settings of one run; attributes that do not exist, and other types, are refused."""

    def __init__(self) -> None:
        super().__init__(log_severity_level=-1)

    def __setattr__(self, name: str, value: Any) -> None:
        value = _typed(self, _RUN, name, value)
        super().__setattr__(name, value)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep a setting by key."""
        _entry("RunOptions.add_run_config_entry", key, value)
        super().add_run_config_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """Return a setting kept by key.

        Raises:
            RuntimeError: There is none.
        """
        if key not in self._entries:
            raise RuntimeError(
                f"RunOptions does not have configuration with key: {key}; "
                f"{_entries_told(self._entries)}"
            )
        return super().get_run_config_entry(key)

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Take an adapter's values for the inputs of their names, in ``run``.

        Of several, the first that has a name tells; all come before what is fed.
        """
        if not isinstance(adapter, LoraAdapter):
            raise TypeError(
                f"add_active_adapter: expected a LoraAdapter, got {type(adapter).__name__}"
            )
        self.__dict__["adapters"] = (*self.adapters, adapter)

    @property
    def adapters(self) -> tuple[LoraAdapter, ...]:
        """The active adapters."""
        found: tuple[LoraAdapter, ...] = self.__dict__.get("adapters", ())
        return found
