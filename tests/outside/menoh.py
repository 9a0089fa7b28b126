"""Menoh's own tests and examples, over builds.

    python tests/outside/menoh.py MENOH_SOURCE [NAME …]

``MENOH_SOURCE`` is a checkout of Menoh 1.x. Its tests of the public interface
(``test/operator.cpp``, ``test/mkldnn_with_generic_fallback_backend.cpp``, ``test/np_io.cpp``) and
its example in C are compiled as they are, with the header and the library that ``hagane build
--menoh`` writes. Its other tests look into Menoh's own classes; its examples in C++ need OpenCV.
With names, only tests that end with one of them run.

The tests of operators read ONNX's test data: it is made here by the ``onnx`` package, of today's
opset, but for Softmax, which normalised all axes from one on together then. Inputs of operators
whose names have SQUASH_DIMS are matrices, as Menoh's tests make them. Needs g++, googletest, protoc
(Debian: ``g++ libgtest-dev libprotobuf-dev protobuf-compiler``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

import hagane
from hagane.errors import HaganeError
from hagane.ship import BuildOptions, build_model

_TEST = re.compile(r"^\s*TEST_OP(_SQUASH_DIMS)?\((\w+), (\w+), eps\);", re.MULTILINE)
# Of the checkout, beside the tests: classes of arrays with which they compare.
_OWN = ("array.cpp", "dims.cpp", "dtype.cpp")
# What Menoh's sources take for granted: headers that others included, a call of older protobuf.
_OLDER = """#include <sstream>
#include <unordered_map>
#include <google/protobuf/io/coded_stream.h>
#define SetTotalBytesLimit(limit, warning) SetTotalBytesLimit(limit)
"""
_PATHS = """#pragma once
#include <filesystem>
#include <string>
namespace filesystem {
struct path {
  std::filesystem::path own;
  path(const char *text) : own(text) {}
  path(std::string const &text) : own(text) {}
  path operator/(std::string const &text) const { return path((own / text).string()); }
  bool exists() const { return std::filesystem::exists(own); }
  std::string str() const { return own.string(); }
};
}
"""


def main() -> None:
    source, names = Path(sys.argv[1]).resolve(), set(sys.argv[2:])
    missing = [name for name in ("g++", "cc", "protoc") if shutil.which(name) is None]
    if missing or not Path("/usr/include/gtest/gtest.h").is_file():
        sys.exit(f"missing: {', '.join(missing) or 'googletest'}")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run = work / "build"
        run.mkdir()
        library = example_model(work / "data" / "vgg16.onnx")
        environment = prepared(work, library)
        failed = example_in_c(source, work, library, environment)
        write_operators(source, work, names)
        write_matrices(work / "data")
        program = compiled(source, work, library)
        chosen = ":".join(f"*_{name}" for name in sorted(names)) or "*"
        done = subprocess.run(
            [str(program), f"--gtest_filter={chosen}"], cwd=run, env=environment, check=False
        )
        sys.exit(failed or done.returncode)


def prepared(work: Path, library: Path) -> dict[str, str]:
    """Write headers and a command ``hagane``; return the environment of the programs."""
    for place in ("include/menoh", "include/include/menoh", "include/filesystem", "include/onnx"):
        (work / place).mkdir(parents=True)
    for place in ("include/menoh", "include/include/menoh"):
        shutil.copy(library / "menoh" / "menoh.h", work / place / "menoh.h")
    (work / "include/filesystem/path.h").write_text(_PATHS)
    (work / "include/older.h").write_text(_OLDER)
    described = (Path(onnx.__file__).parent / "onnx-ml.proto").read_text()
    described = described.replace("package onnx;", "package menoh_onnx;")
    (work / "onnx_pb.proto").write_text(described)
    out = f"--cpp_out={work / 'include/onnx'}"
    subprocess.run(["protoc", out, "onnx_pb.proto"], cwd=work, check=True)
    (work / "include/onnx/onnx_pb.h").write_text('#include "onnx_pb.pb.h"\n')
    command = work / "bin" / "hagane"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hagane "$@"\n')
    command.chmod(0o755)
    own = str(Path(hagane.__file__).parents[1])
    return {
        **os.environ,
        "PYTHONPATH": own,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(library),
    }


def example_model(path: Path) -> Path:
    """Write a small model with the names of the example's VGG-16, and its build."""
    path.parent.mkdir(parents=True)
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((8, 3, 7, 7)).astype(np.float32) / 12,
        "v": random.standard_normal((1000, 8)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["Input_0", "w"], ["Conv_0"], strides=[4, 4]),
        helper.make_node("Relu", ["Conv_0"], ["Relu_0"]),
        helper.make_node("GlobalAveragePool", ["Relu_0"], ["Pool_0"]),
        helper.make_node("Flatten", ["Pool_0"], ["Flat_0"]),
        helper.make_node("Gemm", ["Flat_0", "v"], ["Gemm_0"], transB=1),
        helper.make_node("Softmax", ["Gemm_0"], ["Softmax_0"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "vgg16",
        [helper.make_tensor_value_info("Input_0", TensorProto.FLOAT, [1, 3, 224, 224])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1000])
            for name in ("Gemm_0", "Softmax_0")
        ],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    onnx.save(model, path)
    build = path.with_suffix(".hagane")
    build_model(path, build, BuildOptions(menoh=True))
    return build


def example_in_c(source: Path, work: Path, library: Path, environment: dict[str, str]) -> int:
    """Compile and run the example; return 1 if its numbers are others than a session's."""
    program = work / "example"
    given = source / "example" / "mkldnn_vgg16_example_in_c.c"
    command = ["cc", "-std=c99", str(given), "-I", str(library), "-L", str(library), "-lmenoh"]
    subprocess.run([*command, "-o", str(program)], check=True)
    done = subprocess.run(
        [str(program)], cwd=work / "build", env=environment, capture_output=True, text=True
    )
    session = hagane.InferenceSession(work / "data" / "vgg16.onnx")
    feed = {"Input_0": np.full((1, 3, 224, 224), 0.5, np.float32)}
    products, shares = session.run(["Gemm_0", "Softmax_0"], feed)
    expected = np.concatenate([products.ravel()[:10], shares.ravel()])
    try:
        found = np.array(done.stdout.split(), np.float32)
        np.testing.assert_allclose(found, expected, atol=1e-6)  # six digits are printed
    except (ValueError, AssertionError) as error:
        print(f"example in C: {done.stdout[:200]} {done.stderr[:200]} {error}")
        return 1
    print(f"example in C: {len(found)} numbers as in a session")
    return 0


def write_operators(source: Path, work: Path, names: set[str]) -> None:
    """Write models, data and builds of the tests of operators."""
    text = (source / "test" / "operator.cpp").read_text()
    squashed = {name: bool(squash) for squash, _, name in _TEST.findall(text)}
    cases = {case.name: case for case in collect_testcases(None)}
    root = work / "external/onnx/onnx/backend/test/data/node"
    for name, squash in squashed.items():
        if names and name not in names:
            continue
        if name not in cases:
            print(f"{name}: the onnx package has no such test")
            continue
        model = cases[name].model
        ((inputs, outputs),) = cases[name].data_sets
        if name == "test_softmax_axis_1":
            shares = np.exp(inputs[0] - inputs[0].max((1, 2), keepdims=True))
            outputs = [shares / shares.sum((1, 2), keepdims=True)]
        folder = root / name
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        for kind, values, described in (
            ("input", inputs, model.graph.input),
            ("output", outputs, model.graph.output),
        ):
            for i, (value, item) in enumerate(zip(values, described, strict=True)):
                made = numpy_helper.from_array(np.asarray(value), item.name)
                (data / f"{kind}_{i}.pb").write_bytes(made.SerializeToString())
                if squash:
                    shape = (value.shape[0], int(np.prod(value.shape[1:])))
                    item.CopyFrom(helper.make_tensor_value_info(item.name, made.data_type, shape))
        onnx.save(model, folder / "model.onnx")
        try:
            build_model(folder / "model.onnx", folder / "model.hagane")
        except HaganeError as error:
            print(f"{name}: {error}")


def write_matrices(folder: Path) -> None:
    """Write the arrays that the tests of whole graphs read."""
    random = np.random.default_rng(0)
    x = (random.random((3, 4096)) - 0.5).astype(np.float32)
    weight = (random.random((256, 4096)) - 0.5).astype(np.float32)
    bias = (random.random(256) - 0.5).astype(np.float32)
    product = x @ weight.T + bias
    for name, array in {
        "random_input_3_4096": x,
        "random_input_3_4_32_32": x.reshape(3, 4, 32, 32),
        "random_weight_256_4096": weight,
        "random_bias_256": bias,
        "linear_1d_w256_4096_b_256": product,
        "linear_2d_w256_4096_b_256": product,
        "relu_1d": np.maximum(x, 0),
        "tanh_1d": np.tanh(x),
    }.items():
        lines = [str(array.ndim), " ".join(map(str, array.shape)), " ".join(map(str, array.flat))]
        (folder / f"{name}.txt").write_text("\n".join(lines))


def compiled(source: Path, work: Path, library: Path) -> Path:
    """Compile the tests; return the program."""
    program = work / "tests"
    tests = ("operator.cpp", "mkldnn_with_generic_fallback_backend.cpp", "np_io.cpp")
    command = ["g++", "-std=c++17", "-w", "-include", "older.h"]
    command += ["-I", str(work / "include"), "-I", str(work / "include/onnx")]
    command += ["-I", str(source / "include"), "-I", str(source)]
    command += [str(source / "test" / name) for name in tests]
    command += [str(source / "menoh" / name) for name in _OWN]
    command += [str(work / "include/onnx/onnx_pb.pb.cc"), "-L", str(library), "-lmenoh"]
    command += ["-lgtest", "-lgtest_main", "-lprotobuf", "-lpthread", "-o", str(program)]
    subprocess.run(command, check=True)
    return program


if __name__ == "__main__":
    main()
