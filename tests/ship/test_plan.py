"""The plan in a library of a build: that of the session in the cache, refused when damaged."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import hagane
from hagane.errors import InvalidModel
from hagane.machine import CodeCache
from hagane.native.ready.part import plan_of
from hagane.native.ready.plan_file import FORMAT, MAGIC, Plan, read_plan
from hagane.native.ready.rows import ARRAYS
from hagane.runtime.kept import key_of
from hagane.ship.build import checksums
from hagane.ship.manifest import manifest_text, read_manifest
from tests.ship.conftest import Maker
from tests.ship.models import CASES, save

BEGIN = MAGIC.to_bytes(8, "little") + FORMAT.to_bytes(8, "little")


def place_of(library: bytes) -> slice:
    """Return where the plan lies in a library."""
    at = library.index(BEGIN)
    return slice(at, at + int.from_bytes(library[at + 16 : at + 24], "little"))


def built_plan(folder: Path) -> Plan:
    (library,) = folder.glob("lib*.so")
    content = library.read_bytes()
    return read_plan(np.frombuffer(bytearray(content[place_of(content)]), np.uint8))


def kept_plan(model: Path) -> Plan:
    hagane.InferenceSession(model)
    key = key_of(str(model), hagane.SessionOptions())
    assert key is not None
    found = CodeCache("sessions").find(key)
    assert found is not None
    return plan_of(found.parent)


@pytest.mark.parametrize("name", ["images", "attention", "growing", "look_up"])
def test_a_session_in_the_cache_and_a_build_have_the_same_plan(
    builds: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HAGANE_SESSION_CACHE", raising=False)
    save(CASES[name](), tmp_path / "model.onnx")
    kept, built = kept_plan(tmp_path / "model.onnx"), built_plan(builds(name))
    assert kept.weight_bytes == built.weight_bytes
    for left, right in zip(kept.inputs + kept.outputs, built.inputs + built.outputs, strict=True):
        assert (left.name, left.type) == (right.name, right.type)
    (left_program,), (right_program,) = kept.programs, built.programs
    assert left_program[:4] == right_program[:4]
    (left_part,), (right_part,) = kept.parts, built.parts
    assert left_part.counts == right_part.counts
    assert left_part.labels == right_part.labels
    assert left_part.failures == right_part.failures
    np.testing.assert_array_equal(left_part.weights, right_part.weights)
    for array in ARRAYS:
        np.testing.assert_array_equal(left_part.arrays[array], right_part.arrays[array], array)


# The words of the header, and a drawn share of all others.
@pytest.mark.parametrize("word", [0, 2, *range(4, 14), *range(20, 200, 9)])
def test_a_damaged_plan_is_refused_or_its_damage_left_unread(
    builds: Maker, tmp_path: Path, word: int
) -> None:
    folder = tmp_path / f"damaged{word}"  # the dynamic linker knows libraries by their paths
    shutil.copytree(builds("look_up"), folder)
    (library,) = folder.glob("lib*.so")
    content = bytearray(library.read_bytes())
    place = place_of(bytes(content))
    words = np.frombuffer(content, np.int64, (place.stop - place.start) // 8, place.start)
    words[word] = 1 << 40
    del words
    library.write_bytes(content)
    manifest = read_manifest(folder)
    manifest.update(checksums(bytes(content), (folder / manifest["weights"]).read_bytes()))
    del manifest["check"], manifest["kind"]
    (folder / "manifest.json").write_text(manifest_text(manifest))
    if word < 14:
        with pytest.raises(InvalidModel, match="the plan in the library is damaged"):
            hagane.load_built(folder)
        return
    with suppress(InvalidModel):
        hagane.load_built(folder).close()
