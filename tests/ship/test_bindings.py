"""Each binding: its example classifies a picture as the session does, and a program of promises.

The programs ``bindings`` use a model of many types as their language's users would, and give it
what it does not take; each gets the folders of builds, one of pictures, one of many types, the rest
damaged.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import hagane
from hagane.errors import HaganeError, InvalidArgument
from hagane.ship import BuildOptions, build_model
from tests.native.models import draw
from tests.ship.models import make, node, save

HERE = Path(__file__).parent
BINDINGS = HERE.parents[1] / "bindings"


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """Return a build, a picture, and its class."""
    folder = tmp_path_factory.mktemp("pictures")
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        node("Relu", ["c"], ["r"]),
        node("GlobalAveragePool", ["r"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "g"], ["y"], transB=1),
    ]
    pixels = np.random.default_rng(3).integers(0, 256, (6, 8, 3), np.uint8)
    x = (pixels.transpose(2, 0, 1)[None] / np.float32(255)).astype(np.float32)
    constants = {"w": draw((16, 3, 3, 3), 1), "g": draw((10, 16), 2)}
    feed = save(make(nodes, {"x": (1, 3, 6, 8)}, ["y"], constants, {"x": x}), folder / "net.onnx")
    (scores,) = hagane.InferenceSession(folder / "net.onnx").run(None, feed)
    build_model(folder / "net.onnx", folder / "net.hagane")
    (folder / "picture.ppm").write_bytes(b"P6\n8 6\n255\n" + pixels.tobytes())
    return folder / "net.hagane", folder / "picture.ppm", int(scores.argmax())


def guests() -> dict[str, np.ndarray]:
    """Return inputs of many types, two of which may have other sizes."""
    return {
        "x": draw((2, 3)),
        "ids": np.array([0, 9, 4]),
        "flag": np.array([True, False]),
        "half": np.array([1, -2], np.float16),
        "größe😀": np.array([7], np.uint64),
    }


@pytest.fixture(scope="session")
def promised(
    pictures: tuple[Path, Path, int], tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """Return the arguments of the programs that show the promises of a binding."""
    folder = tmp_path_factory.mktemp("guests")
    feed = guests()
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("Tanh", ["m"], ["y"]),
        node("Gather", ["table", "ids"], ["rows"], name="look up"),
        node("Not", ["flag"], ["unflagged"]),
        node("Neg", ["half"], ["halved"]),
        node("Identity", ["größe😀"], ["länge😀"]),
    ]
    shapes = {"x": ("n", 3), "ids": ("k",), "flag": (2,), "half": (2,), "größe😀": (1,)}
    names = ["y", "rows", "unflagged", "halved", "länge😀"]
    table = np.arange(50, dtype=np.float32).reshape(10, 5)
    proto, _ = make(nodes, shapes, names, {"w": draw((3, 2)), "table": table}, feed)
    for value, kind in zip(proto.graph.output[2:], ("flag", "half", "größe😀"), strict=True):
        dtype = helper.np_dtype_to_tensor_dtype(feed[kind].dtype)
        value.type.tensor_type.elem_type = dtype
    onnx.save(proto, folder / "guests.onnx")
    options = BuildOptions(("x=0..4,3", "ids=0..6"))
    build_model(folder / "guests.onnx", folder / "guests", options)
    library, manifest = "libguests.so", "manifest.json"
    damages: list[tuple[str, Callable[[bytes], bytes]]] = [
        (library, lambda content: content[: len(content) // 3]),
        (library, lambda content: content[: len(content) * 9 // 10]),
        (library, lambda content: b""),
        (library, lambda content: content[:4096] + bytes(4096) + content[8192:]),
        ("guests.weights", lambda content: content[:-8]),
        (manifest, lambda content: content[:200]),
        (manifest, lambda content: b'{"library": "libguests.so"}'),
        (manifest, lambda content: b"[1, 2]"),
        (manifest, lambda content: bytes(range(256))),
        (manifest, lambda content: content.replace(b"libguests.so", b"../so")),
        (manifest, lambda content: content.replace(b".so", b".a")),
    ]
    damaged = []
    for i, (name, damage) in enumerate(damages):
        shutil.copytree(folder / "guests", folder / f"damaged{i}")
        path = folder / f"damaged{i}" / name
        path.write_bytes(damage(path.read_bytes()))
        damaged.append(str(path.parent))
    return [str(pictures[0]), str(folder / "guests"), *damaged, "/nowhere"]


def keeps_promises(command: Sequence[str], promised: list[str], **environment: str) -> None:
    done = run([*command, *promised], Path(promised[0]), **environment)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stdout + done.stderr


def test_python(promised: list[str]) -> None:
    _, whole, *damaged = promised
    for folder in damaged:
        with pytest.raises(HaganeError, match=re.escape(folder)):
            hagane.load_built(folder)
    model, feed = hagane.load_built(whole), guests()
    for _ in range(3):
        _, _, flags, halves, length = model.run(None, feed)
        assert (flags.tolist(), halves.tolist(), length[0]) == ([False, True], [-1, 2], 7)
    for changed, told in (
        ({"x": np.ones((5, 3), np.float32)}, "input 'x': axis 0 is 5, expected 0 to 4"),
        ({"x": np.ones((1, 3))}, "'x'.*float32"),
        ({"x": np.ones(3, np.float32)}, "'x'"),
        ({"z": feed["x"]}, "'z'"),
        ({"ids": np.array([10])}, "look up"),
    ):
        with pytest.raises(HaganeError, match=told):
            model.run(None, {**feed, **changed})
    with pytest.raises(HaganeError, match="'half'"):
        model.run(None, {name: array for name, array in feed.items() if name != "half"})


def test_python_closes_a_model_once_its_runs_have_ended(pictures: tuple[Path, Path, int]) -> None:
    x = np.ones((1, 3, 6, 8), np.float32)
    for _ in range(20):
        model, begun = hagane.load_built(pictures[0]), threading.Event()

        def turn(model: Any = model, begun: threading.Event = begun) -> None:
            with suppress(InvalidArgument):
                while True:
                    model.run(None, {"x": x})
                    begun.set()

        threads = [threading.Thread(target=turn) for _ in range(3)]
        for thread in threads:
            thread.start()
        begun.wait()
        model.close()
        for thread in threads:
            thread.join()
        with pytest.raises(InvalidArgument, match="is closed"):
            model.run(None, {"x": x})


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on this machine")
    return found


def run(command: list[str], build: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "LD_LIBRARY_PATH": str(build), **environment},
    )


def check(
    pictures: tuple[Path, Path, int], tmp_path: Path, command: list[str], **environment: str
) -> None:
    """Expect the class of the picture, and messages for a wrong picture and a wrong build."""
    build, picture, expected = pictures
    done = run([*command, str(build), str(picture)], build, **environment)
    assert (done.returncode, done.stdout) == (0, f"{expected}\n"), done.stderr
    (tmp_path / "wrong.ppm").write_bytes(b"P6\n9 6\n255\n")
    done = run([*command, str(build), str(tmp_path / "wrong.ppm")], build, **environment)
    assert done.returncode != 0
    assert "expected a PPM of 8 x 6" in done.stderr
    done = run([*command, "/nowhere", str(picture)], build, **environment)
    assert done.returncode != 0
    assert "/nowhere/manifest.json" in done.stderr


def test_cpp(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(BINDINGS / "cpp")]
    build = str(pictures[0])
    for source in (BINDINGS / "cpp" / "examples" / "classify.cpp", HERE / "bindings.cpp"):
        command = [tool("c++"), *flags, str(source), "-I", build, "-L", build, "-lnet"]
        done = run([*command, "-o", str(tmp_path / source.stem)], pictures[0])
        assert done.returncode == 0, done.stderr
    keeps_promises([str(tmp_path / "bindings")], promised)
    check(pictures, tmp_path, [str(tmp_path / "classify")])


def test_node(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    program = Path(tool("node"))
    headers = [program.resolve().parents[1] / "include" / "node", Path("/usr/include/node")]
    found = next((path for path in headers if (path / "node_api.h").exists()), None)
    if found is None:
        pytest.skip("the headers of node are not on this machine")
    addon = tmp_path / "hagane.node"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I", str(found)]
    source = str(BINDINGS / "node" / "addon.c")
    done = run([tool("cc"), *flags, source, "-o", str(addon)], pictures[0])
    assert done.returncode == 0, done.stderr
    keeps_promises([str(program), str(HERE / "bindings.js")], promised, HAGANE_ADDON=str(addon))
    example = str(BINDINGS / "node" / "examples" / "classify.js")
    check(pictures, tmp_path, [str(program), example], HAGANE_ADDON=str(addon))


def test_rust(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    cargo = tool("cargo")
    package = tmp_path / "rust"
    shutil.copytree(BINDINGS / "rust", package)
    shutil.copy(HERE / "bindings.rs", package / "examples")
    command = [cargo, "build", "--offline", "--quiet", "--examples"]
    command += ["--manifest-path", str(package / "Cargo.toml")]
    environment = {"CARGO_TARGET_DIR": str(tmp_path / "target"), "RUSTFLAGS": "-D warnings"}
    done = run(command, pictures[0], HAGANE_BUILD=str(pictures[0]), **environment)
    assert done.returncode == 0, done.stderr
    made = tmp_path / "target" / "debug" / "examples"
    keeps_promises([str(made / "bindings")], promised)
    check(pictures, tmp_path, [str(made / "classify")])


def test_go(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    go = tool("go")
    package = tmp_path / "go"
    shutil.copytree(BINDINGS / "go", package)
    build = str(pictures[0])
    environment = {
        "GOCACHE": str(tmp_path / "cache"),
        "GOPATH": str(tmp_path / "path"),
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "CGO_ENABLED": "1",
        "CGO_CFLAGS": f"-I{build}",
        "CGO_LDFLAGS": f"-L{build} -lnet",
    }
    (package / "examples" / "bindings").mkdir()
    shutil.copy(HERE / "bindings.go", package / "examples" / "bindings" / "main.go")
    done = subprocess.run(
        [go, "build", "-o", f"{tmp_path}/", "./examples/classify", "./examples/bindings"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    keeps_promises([str(tmp_path / "bindings")], promised)
    check(pictures, tmp_path, [str(tmp_path / "classify")])


def test_ruby(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    ruby = tool("ruby")
    source = str(BINDINGS / "ruby" / "lib")
    done = run([ruby, "-w", "-I", source, str(HERE / "bindings.rb"), *promised], pictures[0])
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert done.stderr == ""
    example = str(BINDINGS / "ruby" / "examples" / "classify.rb")
    check(pictures, tmp_path, [ruby, "-w", "-I", source, example])


def test_java(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    javac, java = tool("javac"), tool("java")
    home = Path(javac).resolve().parents[1]
    if not (home / "include" / "jni.h").exists():
        pytest.skip("the headers of Java are not on this machine")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    folders = [home / "include", home / "include" / "linux", pictures[0]]
    flags += [f"-I{folder}" for folder in folders]
    glue = str(BINDINGS / "java" / "jni" / "hagane_jni.c")
    library = str(tmp_path / "libhagane_jni.so")
    done = run([tool("cc"), *flags, glue, "-ldl", "-o", library], pictures[0])
    assert done.returncode == 0, done.stderr
    sources = [*(BINDINGS / "java").rglob("*.java"), HERE / "Bindings.java"]
    command = [javac, "-Xlint:all", "-Werror", "-d", str(tmp_path / "classes")]
    done = run([*command, *map(str, sources)], pictures[0])
    assert done.returncode == 0, done.stdout + done.stderr
    start = [java, "-Xcheck:jni", f"-Dhagane.jni={library}", "-cp", str(tmp_path / "classes")]
    keeps_promises([*start, "Bindings"], promised)
    check(pictures, tmp_path, [*start, "Classify"])


def test_csharp(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    compiler, mono = tool("mcs"), tool("mono")
    binding = str(BINDINGS / "csharp" / "Hagane.cs")
    for name, source in (
        ("bindings", HERE / "Bindings.cs"),
        ("classify", BINDINGS / "csharp" / "examples" / "Classify.cs"),
    ):
        command = [compiler, "-warnaserror", "-langversion:7.2", f"-out:{tmp_path / name}.exe"]
        done = run([*command, binding, str(source)], pictures[0])
        assert done.returncode == 0, done.stdout + done.stderr
    keeps_promises([mono, str(tmp_path / "bindings.exe")], promised)
    check(pictures, tmp_path, [mono, str(tmp_path / "classify.exe")])


def test_ocaml(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    compiler, build = tool("ocamlopt"), str(pictures[0])
    binding = tmp_path / "ocaml"
    shutil.copytree(BINDINGS / "ocaml", binding)
    shutil.copy(HERE / "bindings.ml", binding)
    flags = ["-w", "+a-4-9-40..42-44-45-70", "-warn-error", "+a", "-I", "+threads"]
    flags += ["-ccopt", f"-Wall -Wextra -Werror -I{build} -L{build}"]
    sources = [str(binding / name) for name in ("hagane_stubs.c", "hagane.mli", "hagane.ml")]
    for program in ("bindings.ml", "examples/classify.ml"):
        made = str(tmp_path / Path(program).stem)
        command = [compiler, *flags, "unix.cmxa", "threads.cmxa", "-I", str(binding), *sources]
        done = subprocess.run(
            [*command, str(binding / program), "-cclib", "-lnet", "-o", made],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    keeps_promises([str(tmp_path / "bindings")], promised)
    check(pictures, tmp_path, [str(tmp_path / "classify")])


def test_haskell(pictures: tuple[Path, Path, int], promised: list[str], tmp_path: Path) -> None:
    compiler, build = tool("ghc"), str(pictures[0])
    binding = BINDINGS / "haskell"
    stub = tmp_path / "hagane_hs.o"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-c", "-I", build]
    source = str(binding / "cbits" / "hagane_hs.c")
    done = run([tool("cc"), *flags, source, "-o", str(stub)], pictures[0])
    assert done.returncode == 0, done.stderr
    for program in (HERE / "Bindings.hs", binding / "examples" / "Classify.hs"):
        made = tmp_path / program.stem
        command = [compiler, "-O0", "-Wall", "-Werror", "-threaded"]
        command += [
            "-outputdir",
            f"{made}.objects",
            f"-i{binding / 'src'}",
            str(program),
            str(stub),
            f"-L{build}",
            "-lnet",
        ]
        done = run([*command, "-o", str(made)], pictures[0])
        assert done.returncode == 0, done.stdout + done.stderr
    keeps_promises([str(tmp_path / "Bindings"), "+RTS", "-N2", "-RTS"], promised)
    check(pictures, tmp_path, [str(tmp_path / "Classify")])
