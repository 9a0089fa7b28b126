"""Functions of ONNX Runtime's that concern the whole process."""

from __future__ import annotations

import copy
import logging
import operator
import platform
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import hagane
from hagane.onnxruntime.devices import (
    PROVIDER,
    OrtArenaCfg,
    OrtEpDevice,
    OrtHardwareDevice,
    OrtMemoryInfo,
    cpu_device,
)
from hagane.onnxruntime.options import SessionOptions

# The version whose interface this package has; where ONNX Runtime is installed, its version is
# told, so that both answers to the question agree.
INTERFACE = "1.32.0"
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
_callback: list[logging.Handler] = []
_threads: list[int] = []  # of sessions without threads of their own, if that was set


def package_version() -> str:
    """Return the version that gates of other packages see."""
    try:
        return metadata.version("onnxruntime")
    except metadata.PackageNotFoundError:
        return INTERFACE


def get_version_string() -> str:
    """Return the version of ONNX Runtime whose interface this is."""
    return package_version()


def get_build_info() -> str:
    """Return the stand-in of ONNX Runtime."""
    return (
        f"ORT Build Info: hagane {hagane.__version__}, in the place of ONNX Runtime "
        f"{package_version()}"
    )


def get_all_providers() -> list[str]:
    """Return the execution providers that hagane knows: the CPU."""
    return [PROVIDER]


def get_available_providers() -> list[str]:
    """Return the execution providers: the CPU."""
    return [PROVIDER]


def get_device() -> str:
    """Return the kind of device that models run on."""
    return "CPU"


def get_ep_devices() -> list[OrtEpDevice]:
    """Return the devices with their execution providers: the CPU."""
    return [cpu_device()]


def get_hardware_devices() -> list[OrtHardwareDevice]:
    """Return the devices: the CPU."""
    return [cpu_device().device]


def get_default_session_options() -> SessionOptions:
    """Return the settings of a session for which none were given."""
    return SessionOptions()


def has_collective_ops() -> bool:
    """Whether operators run across machines: no."""
    return False


def disable_telemetry_events() -> None:
    """Send no telemetry: hagane never does."""


def enable_telemetry_events() -> None:
    """Accept telemetry: hagane has none, so nothing is sent."""


def set_seed(seed: int) -> None:
    """Begin the random numbers of nodes without a seed anew, for all sessions of the process.

    The numbers are NumPy's, others than ONNX Runtime's of the same seed.
    """
    from hagane.ops.random.draw import seed_open  # with all operators

    seed_open(operator.index(seed))


def set_default_logger_severity(severity: int) -> None:
    """Show messages from a severity on: 0 all, 1 information, 2 warnings, 3 errors, 4 fatal."""
    if not 0 <= operator.index(severity) <= 4:
        raise RuntimeError(f"expected a severity of 0 to 4, got {severity}")
    logging.getLogger("hagane").setLevel(_LEVELS[int(severity)])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accept a level of detail of messages: there is one."""


def set_default_logger_callback(callback: Callable[..., Any] | None, severity: int = 2) -> None:
    """Hand messages to a function.

    Args:
        callback: Called with severity, category, the logger's name, the place and the message.
            None ends it.
        severity: From which severity on.
    """
    logger = logging.getLogger("hagane")
    while _callback:
        logger.removeHandler(_callback.pop())
    if callback is None:
        return
    handler = _Handing(callback)
    _callback.append(handler)
    logger.addHandler(handler)
    set_default_logger_severity(severity)


class _Handing(logging.Handler):
    """Hands the messages of hagane's loggers to a function of the caller's."""

    def __init__(self, callback: Callable[..., Any]):
        super().__init__()
        self._call = callback

    def emit(self, record: logging.LogRecord) -> None:
        level = next((i for i, one in enumerate(_LEVELS) if record.levelno <= one), 4)
        place = f"{record.pathname}:{record.lineno} {record.funcName}"
        self._call(level, "hagane", record.name, place, record.getMessage())


def set_global_thread_pool_sizes(
    intra_op_num_threads: int = 0, inter_op_num_threads: int = 0
) -> None:
    """Set how many threads sessions have whose options say ``use_per_session_threads = False``.

    Args:
        intra_op_num_threads: Threads of a run; 0 for the cores of this process.
        inter_op_num_threads: Has no effect.
    """
    _threads[:] = [operator.index(intra_op_num_threads)]
    operator.index(inter_op_num_threads)


def with_shared_threads(options: SessionOptions) -> SessionOptions:
    """Return a session's options with the process's number of threads, if it is to have that.

    Raises:
        RuntimeError: The number was set, and the session is to have threads of its own.
    """
    if options.use_per_session_threads and _threads:
        raise RuntimeError(
            "the process has global threads (set_global_thread_pool_sizes), so that a session "
            "cannot have its own; set SessionOptions.use_per_session_threads = False"
        )
    if options.use_per_session_threads or not _threads or options.intra_op_num_threads:
        return options
    made = copy.copy(options)
    made.intra_op_num_threads = _threads[0]
    return made


def create_and_register_allocator(
    memory_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None
) -> None:
    """Accept an arena: the memory of a run is planned ahead, and sessions share none."""


def create_and_register_allocator_v2(
    provider_type: str,
    memory_info: OrtMemoryInfo,
    provider_options: Mapping[str, str],
    arena_cfg: OrtArenaCfg | None,
) -> None:
    """Accept an arena: the memory of a run is planned ahead, and sessions share none."""


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Load the libraries of a GPU: models run on the CPU, which needs none."""


def print_debug_info() -> None:
    """Print the facts for the report of a fault."""
    print(get_build_info())
    print("platform:", platform.platform())
    print("Python:", platform.python_version())
    for name in ("hagane", "numpy", "onnx", "onnx-ir", "onnxruntime"):
        try:
            print(f"{name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            print(f"{name}: not installed")
