"""The example of each binding classifies a picture as the session does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import hagane
from hagane.ship import build_model
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


def test_cpp(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
    program = tmp_path / "classify"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(BINDINGS / "cpp")]
    source = BINDINGS / "cpp" / "examples" / "classify.cpp"
    build = str(pictures[0])
    command = [tool("c++"), *flags, str(source), "-I", build, "-L", build, "-lnet"]
    done = run([*command, "-o", str(program)], pictures[0])
    assert done.returncode == 0, done.stderr
    check(pictures, tmp_path, [str(program)])


def test_node(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
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
    example = str(BINDINGS / "node" / "examples" / "classify.js")
    check(pictures, tmp_path, [str(program), example], HAGANE_ADDON=str(addon))


@pytest.mark.long
def test_rust(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
    cargo = tool("cargo")
    package = tmp_path / "rust"
    shutil.copytree(BINDINGS / "rust", package)
    command = [cargo, "build", "--offline", "--quiet", "--example", "classify"]
    command += ["--manifest-path", str(package / "Cargo.toml")]
    environment = {"CARGO_TARGET_DIR": str(tmp_path / "target"), "RUSTFLAGS": "-D warnings"}
    done = run(command, pictures[0], HAGANE_BUILD=str(pictures[0]), **environment)
    assert done.returncode == 0, done.stderr
    check(pictures, tmp_path, [str(tmp_path / "target" / "debug" / "examples" / "classify")])


@pytest.mark.long
def test_go(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
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
    program = tmp_path / "classify"
    done = subprocess.run(
        [go, "build", "-o", str(program), "./examples/classify"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    check(pictures, tmp_path, [str(program)])


def test_ruby(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
    ruby = tool("ruby")
    source = str(BINDINGS / "ruby" / "lib")
    done = run([ruby, "-w", "-I", source, str(HERE / "bindings.rb"), str(pictures[0])], pictures[0])
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert done.stderr == ""
    example = str(BINDINGS / "ruby" / "examples" / "classify.rb")
    check(pictures, tmp_path, [ruby, "-w", "-I", source, example])


@pytest.mark.long
def test_java(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
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
    done = run([*start, "Bindings", str(pictures[0])], pictures[0])
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stdout + done.stderr
    check(pictures, tmp_path, [*start, "Classify"])


def test_csharp(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
    compiler, mono = tool("mcs"), tool("mono")
    binding = str(BINDINGS / "csharp" / "Hagane.cs")
    for name, source in (
        ("bindings", HERE / "Bindings.cs"),
        ("classify", BINDINGS / "csharp" / "examples" / "Classify.cs"),
    ):
        command = [compiler, "-warnaserror", "-langversion:7.2", f"-out:{tmp_path / name}.exe"]
        done = run([*command, binding, str(source)], pictures[0])
        assert done.returncode == 0, done.stdout + done.stderr
    done = run([mono, str(tmp_path / "bindings.exe"), str(pictures[0])], pictures[0])
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stdout + done.stderr
    check(pictures, tmp_path, [mono, str(tmp_path / "classify.exe")])


def test_ocaml(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
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
    done = run([str(tmp_path / "bindings"), build], pictures[0])
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    check(pictures, tmp_path, [str(tmp_path / "classify")])


@pytest.mark.long
def test_haskell(pictures: tuple[Path, Path, int], tmp_path: Path) -> None:
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
    done = run([str(tmp_path / "Bindings"), build, "+RTS", "-N2"], pictures[0])
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    check(pictures, tmp_path, [str(tmp_path / "Classify")])
