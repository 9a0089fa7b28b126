"""Marks of pytest for tests that need a device, or time; those of absent devices are skipped."""

from __future__ import annotations

from typing import Any


def _skipped(device: str) -> Any:
    import pytest

    def mark(test: Any) -> Any:
        reason = f"hagane has no {device}"
        return pytest.mark.skip(reason=reason)(test)

    return mark


def gpu(test: Any) -> Any:
    """Skip a test of a GPU."""
    return _skipped("CUDA device")(test)


def cudnn(test: Any) -> Any:
    """Skip a test of cuDNN."""
    return _skipped("cuDNN")(test)


def ideep(test: Any) -> Any:
    """Skip a test of iDeep."""
    return _skipped("iDeep")(test)


def chainerx(test: Any) -> Any:
    """Skip a test of ChainerX."""
    return _skipped("ChainerX")(test)


def nccl(test: Any) -> Any:
    """Skip a test of NCCL."""
    return _skipped("NCCL")(test)


def multi_gpu(number: int) -> Any:
    """Return the mark of tests of several GPUs, which are skipped.

    Args:
        number: How many GPUs they need.
    """
    return _skipped(f"{number} CUDA devices")


def slow(test: Any) -> Any:
    """Mark a test as slow."""
    import pytest

    return pytest.mark.slow(test)
