"""Arguments that name execution providers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

# Those that builds of ONNX Runtime may have.
KNOWN_PROVIDERS = frozenset(
    f"{name}ExecutionProvider"
    for name in (
        *("ACL", "Azure", "CANN", "CPU", "CUDA", "CoreML", "Dml", "Dnnl", "JS", "MIGraphX"),
        *("Nnapi", "NvTensorRTRTX", "OpenVINO", "QNN", "ROCM", "Rknpu", "SNPE", "Tensorrt"),
        *("Tvm", "VSINPU", "VitisAI", "WebGPU", "WebNN", "Xnnpack"),
    )
)


def check_and_normalize_provider_args(
    providers: Any, provider_options: Any, available_provider_names: Sequence[str]
) -> tuple[list[str], list[dict[str, str]]]:
    """Return the names of execution providers that are available, and the options of each.

    Raises:
        ValueError: They are no sequence, one is neither a name nor a name with options, or the
            options do not match.
    """
    found: dict[str, dict[str, str]] = {}
    try:
        names = provider_names(providers, provider_options)
    except TypeError as error:
        raise ValueError(str(error)) from error
    for one in provider_options or ():
        if not isinstance(one, Mapping):
            raise ValueError(f"provider_options: expected dicts, got {one!r}")
    if provider_options and any(isinstance(one, tuple) for one in providers):
        raise ValueError(
            "expected options in provider_options or beside the names of providers, got both"
        )
    for i, name in enumerate(names):
        if name not in available_provider_names:
            warnings.warn(
                f"the execution provider {name!r} is not available; available providers: "
                f"{', '.join(map(repr, available_provider_names))}",
                stacklevel=2,
            )
            continue
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=2)
        given = providers[i][1] if isinstance(providers[i], tuple) else {}
        given = provider_options[i] if provider_options else given
        found.setdefault(name, {str(key): str(value) for key, value in given.items()})
    return list(found), list(found.values())


def provider_names(providers: Any, options: Any) -> list[str]:
    """Return the names of execution providers.

    Raises:
        TypeError: They are no sequence.
        ValueError: One is neither a name nor a name with options, or the options do not match.
    """
    if providers is None:
        return []
    if not isinstance(providers, Sequence | Mapping):
        raise TypeError(f"providers: expected a list, got {type(providers).__name__}")
    if options is not None and not isinstance(options, Sequence):
        raise ValueError(f"provider_options: expected a list, got {type(options).__name__}")
    if options is not None and len(options) != len(providers):
        raise ValueError(
            f"provider_options: expected one for each of {len(providers)} providers, "
            f"got {len(options)}"
        )
    names = []
    for one in providers:
        name = one[0] if isinstance(one, tuple) and len(one) == 2 else one
        if not isinstance(name, str):
            raise ValueError(f"providers: expected names or (name, options), got {one!r}")
        names.append(name)
    return names
