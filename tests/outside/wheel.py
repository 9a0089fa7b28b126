"""Build the wheel, install it where nothing else is, and use it: bare, then with each extra.

    python tests/outside/wheel.py [--all]

``--all`` adds the extras whose packages take hundreds of megabytes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = {"compiler", "torch", "all"}
NOT_FOR_USERS = {"dev"}

PROGRAM = """
import numpy as np, onnx, hagane
from onnx import TensorProto, helper
graph = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["y"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "relu.onnx")
(y,) = hagane.InferenceSession("relu.onnx").run(None, {"x": np.float32([-1, 2])})
assert y.tolist() == [0, 2], y
print("a model runs")
"""


def run(*words: object, folder: Path) -> str:
    """Run a command and return what it printed; its errors end the program."""
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="install the heavy extras too")
    every = parser.parse_args().all
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = sorted(set(project["optional-dependencies"]) - NOT_FOR_USERS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
        run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, folder=folder)
        (wheel,) = folder.glob("hagane-*.whl")
        venv.create(folder / "clean", with_pip=True)
        python = folder / "clean" / "bin" / "python"
        for extra in ["", *(e for e in extras if every or e not in HEAVY)]:
            wanted = f"{wheel}[{extra}]" if extra else str(wheel)
            run(python, "-m", "pip", "install", "--quiet", wanted, folder=folder)
            version = run(folder / "clean" / "bin" / "hagane", "--version", folder=folder)
            assert version == run(python, "-m", "hagane", "--version", folder=folder)
            answer = run(python, "-c", PROGRAM, folder=folder)
            shown = run(python, "-m", "hagane", "run", "relu.onnx", "--random", "1", folder=folder)
            assert "y: float32[1]" in shown, shown
            name = f"with the extra '{extra}'" if extra else "bare"
            print(f"{wheel.name} {name}: {version.strip()}, {answer.strip()}", flush=True)


if __name__ == "__main__":
    main()
