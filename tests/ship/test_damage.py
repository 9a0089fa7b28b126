"""Builds whose files are damaged in their structure: refused by name, in C and in Python."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import hagane
from hagane.errors import HaganeError, InvalidArgument, InvalidFeed, InvalidModel, KernelError
from hagane.ship.folder import is_build
from hagane.ship.manifest import manifest_text, read_manifest
from hagane.ship.refit import refit
from tests.ship.conftest import Maker, compile_c, run_c, sanitize
from tests.ship.damage import damaged, write_corpus
from tests.ship.models import CASES, save

HERE = Path(__file__).parent


def copied(builds: Maker, into: Path) -> Path:
    shutil.copytree(builds("any_batch", shapes=("x=1..8,33",)), into)
    return into


def opened(builds: Maker, folder: Path, count: int, *flags: str, **options: object) -> list[int]:
    """Open drawn manifests in a program in C; return how many ended with each code."""
    build = builds("any_batch", shapes=("x=1..8,33",), **options)
    shutil.copytree(build, folder / "b")
    write_corpus((build / "manifest.json").read_text(), count, folder / "corpus")
    compile_c(HERE / "structure.c", build, folder / "structure", "-std=c11", *flags)
    (weights,) = build.glob("*.weights")
    arguments = (str(folder / "b"), str(weights), str(folder / "corpus"))
    done = run_c(folder / "structure", build, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(text) for text in done.stdout.split()]


def test_manifests_of_damaged_structure_crash_no_program(builds: Maker, tmp_path: Path) -> None:
    codes = opened(builds, tmp_path, 600)
    fine, harmed, other_machine, other_version = (codes[i] for i in (0, 3, 6, 8))
    # (Keys that the interface does not read may hold anything.)
    assert min(fine, harmed, other_machine, other_version) > 2
    assert sum(codes) == 600 == fine + harmed + other_machine + other_version


@pytest.mark.long
def test_damaged_structure_is_clean_under_sanitizers(
    builds: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sanitize(monkeypatch, "address,undefined")
    flags = ("-fsanitize=address,undefined", "-g")
    codes = opened(builds, tmp_path, 5000, *flags, static=True, name="damaged")
    assert sum(codes) == 5000


def test_manifests_of_damaged_structure_are_refused_by_name_in_python(
    builds: Maker, tmp_path: Path
) -> None:
    folder = copied(builds, tmp_path / "b")
    text = (folder / "manifest.json").read_text()
    model = tmp_path / "any_batch.onnx"
    feed = save(CASES["any_batch"](), model)
    (expected,) = hagane.load_built(folder).run(None, feed)
    messages = []
    for seed in range(300):
        (folder / "manifest.json").write_bytes(damaged(text, seed))
        is_build(folder)
        try:
            loaded = hagane.load_built(folder)
        except HaganeError as error:
            messages.append(str(error))
            continue
        with suppress(InvalidFeed, InvalidArgument, KernelError):  # it describes other inputs
            np.testing.assert_array_equal(loaded.run(None, feed)[0], expected)
        loaded.close()
    assert 100 < len(messages) < 300
    assert all(str(folder) in message for message in messages)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("inputs", {"x": 3}, "'inputs': expected a list of descriptions, got {'x': 3}"),
        ("levels", ["../other"], "'levels': expected a list of names of folders in this one"),
        ("levels", [3], r"'levels': expected a list of names of folders in this one, got \[3\]"),
        ("library", "/lib/libc.so.6", "'library': expected the name of a file beside it"),
        ("library", None, "'library': expected the name of a file beside it, got None"),
        ("threads", 1.5, "'threads': expected a whole number of 0 or more, got 1.5"),
        ("threads", -1, "'threads': expected a whole number of 0 or more, got -1"),
        ("name", "a/b", "'name': expected letters, digits and _, got 'a/b'"),
        ("sums", [], r"'sums': expected the checksums of library and weights, got \[\]"),
        ("weights_at", "8", "'weights_at': expected a place in the library, got '8'"),
    ],
)
def test_keys_of_a_manifest_that_mean_nothing_are_named(
    builds: Maker, tmp_path: Path, key: str, value: object, text: str
) -> None:
    folder = copied(builds, tmp_path / "b")
    content = read_manifest(folder)
    del content["check"], content["kind"]
    (folder / "manifest.json").write_text(manifest_text({**content, key: value}))
    model = tmp_path / "any_batch.onnx"
    save(CASES["any_batch"](), model)
    for use in (hagane.load_built, lambda folder: refit(folder, model)):
        with pytest.raises(InvalidModel, match=text):
            use(folder)
    del content[key]
    (folder / "manifest.json").write_text(manifest_text(content))
    with pytest.raises(InvalidModel, match=f"lacks the key '{key}': build the model again"):
        hagane.load_built(folder)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"3", b"\xff\xfe", b"[" * 100_000, b'{"check": "' + b"\xc3" * 9]
)
def test_manifests_that_are_none_are_refused(builds: Maker, tmp_path: Path, content: bytes) -> None:
    folder = copied(builds, tmp_path / "b")
    (folder / "manifest.json").write_bytes(content)
    assert not is_build(folder)
    with pytest.raises(InvalidModel, match=r"manifest.json' is damaged: build the model again"):
        hagane.load_built(folder)


def test_weights_of_any_other_size_or_content_are_refused(builds: Maker, tmp_path: Path) -> None:
    folder = copied(builds, tmp_path / "b")
    path = folder / "any_batch.weights"
    whole, random = path.read_bytes(), np.random.default_rng(0)
    nan = np.full(len(whole) // 4, np.nan, np.float32).tobytes()
    drawn = [random.bytes(int(random.integers(1, 3 * len(whole)))) for _ in range(20)]
    moved = whole[64:] + whole[:64]
    for content in (b"", b"\0", bytes(len(whole)), nan, moved, whole + b"\0", whole * 2, *drawn):
        path.write_bytes(content)
        with pytest.raises(InvalidModel, match=r"any_batch\.weights"):
            hagane.load_built(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidModel, match=r"any_batch\.weights' is empty, or no file"):
        hagane.load_built(folder)
