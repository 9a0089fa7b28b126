from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hagane.native.run.engine import load_engine
from hagane.ship import BuildOptions, build_model
from tests.ship.models import CASES, save

Maker = Callable[..., Path]


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """Return a function from a model's name to the folder of its build; each is made once."""
    folder = tmp_path_factory.mktemp("builds")
    made: dict[tuple[object, ...], Path] = {}

    def make(case: str, **options: object) -> Path:
        key = (case, *sorted(options.items()))
        if key not in made:
            model = folder / f"{case}.onnx"
            if not model.exists():
                save(CASES[case](), model)
            made[key] = folder / f"{len(made)}.hagane"
            build_model(model, made[key], BuildOptions(**options))  # type: ignore[arg-type]
        return made[key]

    return make


def sanitize(monkeypatch: pytest.MonkeyPatch, sanitizers: str) -> None:
    """Have builds compiled with sanitizers, but not the engine, which this process loads itself."""
    load_engine()
    monkeypatch.setenv("HAGANE_SANITIZE", sanitizers)


def compile_c(source: Path, folder: Path, program: Path, *flags: str, compiler: str = "cc") -> None:
    """Compile a program as the README of a build says, with warnings as errors."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} on this machine")
    (library,) = folder.glob("lib*")
    name = library.stem.removeprefix("lib")
    command = [compiler, "-Wall", "-Wextra", "-Werror", *flags, str(source), "-I", str(folder)]
    command += ["-L", str(folder), f"-l{name}", "-lm", "-lpthread", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_c(program: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program beside the library of a build."""
    return subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"LD_LIBRARY_PATH": str(folder), "PATH": "/usr/bin:/bin"},
    )
