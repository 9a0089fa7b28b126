"""Builds whose layers take the forms that were measured to be fastest."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.errors import InvalidArgument, InvalidModel
from hagane.machine import processor_name
from hagane.runtime.tuned import TuningCache
from hagane.ship import BuildOptions, build_model, load_built, refit
from hagane.ship.library import _units
from hagane.ship.manifest import manifest_text, read_manifest


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep findings whatever else runs: other tests do."""
    monkeypatch.setattr("hagane.native.tuning.measure._QUIET", 0.0)


FEED = {"x": np.random.default_rng(3).standard_normal((1, 32, 14, 14)).astype(np.float32)}


def convolution(path: Path, seed: int = 0, rows: int | str = 14) -> Path:
    """Write a model of one convolution of 3 x 3."""
    weight = np.random.default_rng(seed).standard_normal((64, 32, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1])],
        "images",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, rows, 14])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64, rows, 14])],
        [numpy_helper.from_array(weight, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


def measured(folder: Path) -> tuple[dict[str, object], Path, Path]:
    """Return the manifest of a tuned build, its folder and the file of findings."""
    file = folder / "choices.json"
    options = BuildOptions(tune=20.0, tuning_cache=str(file), threads=1)
    manifest = build_model(convolution(folder / "m.onnx"), folder / "b", options)
    return manifest, folder / "b", file


def other_form(file: Path, processor: str) -> str:
    """Change the findings of a file to a form that no rule takes; return the layer."""
    found = json.loads(file.read_text())
    ((name, layers),) = found["processors"].items()
    (key,) = layers
    kind = name.removeprefix(processor_name())
    found["processors"] = {processor + kind: {key: {"winograd": 0, "blocks": 1}}}
    file.write_text(json.dumps(found))
    return str(key)


def test_measured_forms_are_kept_in_the_file_and_in_the_manifest(tmp_path: Path) -> None:
    manifest, build, file = measured(tmp_path)
    found = json.loads(file.read_text())["processors"]
    ((name, layers),) = found.items()
    assert name.startswith(f"{processor_name()}, builds for {manifest['target']}, 1 threads, fp32")
    assert manifest["choices"] == layers
    assert len(layers) == 1
    expected = hagane.InferenceSession(tmp_path / "m.onnx").run(None, FEED)[0]
    np.testing.assert_allclose(load_built(build).run(None, FEED)[0], expected, atol=1e-4)


def test_findings_of_another_machine_make_the_build_and_its_refit(tmp_path: Path) -> None:
    _, _, file = measured(tmp_path)
    key = other_form(file, "another processor (1/2/3)")
    options = BuildOptions(tuning_cache=str(file), threads=1)
    model = convolution(tmp_path / "m.onnx")
    carried = build_model(model, tmp_path / "c", options)
    by_rule = build_model(model, tmp_path / "r", BuildOptions(threads=1))
    assert carried["choices"] == {key: {"winograd": 0, "blocks": 1}}
    assert by_rule["choices"] == {}
    assert carried["kernels"] != by_rule["kernels"]
    other = convolution(tmp_path / "other.onnx", seed=1)
    assert refit(tmp_path / "c", other)["kernels"] == carried["kernels"]
    expected = hagane.InferenceSession(other).run(None, FEED)[0]
    found = load_built(tmp_path / "c").run(None, FEED)[0]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_of_several_other_machines_none_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "choices.json"
    layer = {"layer": {"winograd": 0}}
    content = {"format": 1, "processors": {"a, kind": layer, "b": {"other": {"winograd": 2}}}}
    file.write_text(json.dumps(content))
    logger = logging.getLogger("hagane")
    with caplog.at_level(logging.INFO, "hagane"):
        assert list(TuningCache(str(file), logger, "kind", elsewhere=True).load()) == ["layer"]
    assert f"'{file}': the findings are those of a, kind" in caplog.text
    assert not TuningCache(str(file), logger, "kind").load()
    content["processors"]["c, kind"] = layer  # type: ignore[index]
    file.write_text(json.dumps(content))
    assert not TuningCache(str(file), logger, "kind", elsewhere=True).load()


def test_options_that_cannot_be_are_told(tmp_path: Path) -> None:
    model = convolution(tmp_path / "m.onnx")
    with pytest.raises(InvalidArgument, match="--tune: expected seconds above 0, got 0"):
        build_model(model, tmp_path / "b", BuildOptions(tune=0.0))
    expected = "--tune measures on this machine, which is no aarch64: .*--tuning-cache"
    if not BuildOptions().target and "aarch64" not in processor_name():
        with pytest.raises(InvalidArgument, match=expected):
            build_model(model, tmp_path / "b", BuildOptions(tune=1.0, target="aarch64"))


def test_open_sizes_are_told_to_go_by_rule(tmp_path: Path) -> None:
    told: list[str] = []
    model = convolution(tmp_path / "rows.onnx", rows="n")
    options = BuildOptions(("x=1,32,1..20,14",), tune=1.0, tuning_cache=str(tmp_path / "c.json"))
    assert build_model(model, tmp_path / "b", options, told.append)["choices"] == {}
    assert told == ["--tune measures layers of known sizes: those of open ones go by rule"]


def test_manifests_without_forms_of_layers_are_those_of_earlier_versions(tmp_path: Path) -> None:
    model = convolution(tmp_path / "m.onnx")
    manifest = build_model(model, tmp_path / "b", BuildOptions(threads=1))
    del manifest["choices"]
    written = tmp_path / "b" / "manifest.json"
    written.write_text(manifest_text(manifest))
    assert "choices" not in refit(tmp_path / "b", model)
    manifest["choices"] = {"layer": {"winograd": 3}}
    written.write_text(manifest_text(manifest))
    with pytest.raises(InvalidModel, match="'choices': expected the forms of layers, by layer"):
        read_manifest(tmp_path / "b")


def test_a_changed_kernel_changes_the_units_around_it_alone() -> None:
    kernels = {f"kernel{i:03}": f"void KERNEL(void) {{}}{' ' * 3000}" for i in range(200)}
    before = _units(kernels)
    assert "".join(kernels).count("kernel") == "\n".join(before).count("kernel")
    kernels["kernel100a"] = f"int KERNEL;{' ' * 9000}"
    changed = set(_units(kernels)) - set(before)
    assert len(before) > 10
    assert 1 <= len(changed) <= 4


def test_progress_counts_the_files(tmp_path: Path) -> None:
    told: list[str] = []
    model = convolution(tmp_path / "m.onnx")
    target = build_model(model, tmp_path / "b", progress=told.append)["target"]
    assert told[0] == f"generating kernels for {target}"
    assert told[1:] == [f"compiling for {target}, 1 of 1 files"]
