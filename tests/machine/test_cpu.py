"""Levels of vector instructions: what the CPU has, and what was asked for."""

from __future__ import annotations

import logging
import platform
from pathlib import Path

import pytest

from hagane.machine import LEVELS, best_level, cpu, cpu_features, level_named
from hagane.machine.cpu import AMX, AVX2, AVX512, PORTABLE

needs_x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="levels above portable are x86's"
)


def features(tmp_path: Path, text: str) -> frozenset[str]:
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    return cpu_features(str(path))


def test_features_are_those_that_all_cores_have(tmp_path: Path) -> None:
    text = "processor: 0\nflags\t: sse avx2 fma\n\nprocessor: 1\nflags\t: sse fma\n"
    assert features(tmp_path, text) == {"sse", "fma"}


def test_a_machine_that_lists_no_features_has_none(tmp_path: Path) -> None:
    assert features(tmp_path, "processor : 0\n") == frozenset()
    assert cpu_features(str(tmp_path / "missing")) == frozenset()


def test_matrix_tiles_need_the_systems_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "flags\t: avx512f amx_tile amx_bf16 amx_int8\n"
    monkeypatch.setattr(cpu, "_may_use_tiles", lambda: True)
    assert features(tmp_path, text) == {"avx512f", "amx_tile", "amx_bf16", "amx_int8"}
    (tmp_path / "refused").mkdir()
    monkeypatch.setattr(cpu, "_may_use_tiles", lambda: False)
    assert features(tmp_path / "refused", text) == {"avx512f"}


@needs_x86
def test_the_best_level_is_the_widest_that_the_features_allow() -> None:
    assert best_level(frozenset()) is PORTABLE
    assert best_level(AVX2.needs) is AVX2
    assert best_level(AMX.needs) is AMX
    assert best_level(AVX512.needs) is AVX512
    assert best_level(AMX.needs - {"amx_int8"}) is AVX512
    assert best_level(AVX512.needs - {"avx512vl"}) is AVX2


def test_other_processors_get_portable_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert best_level(AVX512.needs) is PORTABLE


@needs_x86
def test_a_level_is_found_by_name() -> None:
    everything = AMX.needs | AVX512.needs | AVX2.needs
    assert [level_named(level.name, everything) for level in LEVELS] == list(LEVELS)
    assert level_named(None, everything) is AMX
    assert level_named("", frozenset()) is PORTABLE


@needs_x86
def test_instructions_that_the_cpu_lacks_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="hagane.machine"):
        assert level_named("avx512", AVX2.needs) is AVX2
    assert (
        "the instructions 'avx512' need avx512bw, avx512dq, avx512f, avx512vl, which this CPU "
        "lacks: kernels are generated for 'avx2'"
    ) in caplog.text


def test_unknown_instructions_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="hagane.machine"):
        assert level_named("sse9", frozenset()) is PORTABLE
    assert (
        "there are no instructions 'sse9' (expected amx, avx512, avx2, portable): kernels are "
        "generated for 'portable'"
    ) in caplog.text
