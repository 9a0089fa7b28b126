"""Build the wheel, install it where nothing else is, and use it: bare, then with each extra.

    python tests/outside/wheel.py [--all]

Extras without a command of their own are installed in one go; ``--all`` installs each for itself,
those whose packages take hundreds of megabytes too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable
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

FILES = {
    "calc.l": "%%\n[0-9]+  NUMBER\n[ ]+  skip\n",
    "even.pml": "let x = rand(0, 5) in (x : {y:int | Prob(y % 2 = 0) = 1/2})",
    "buffer.sv": "module buffer(input logic a, output logic b); assign b = a; endmodule",
    "node.yaml": "kind: Node\nmetadata: {name: one}\nstatus: {allocatable: {cpu: '4'}}\n",
    "pod.yaml": "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n",
}
# Commands of the bare core, and what they print.
BARE = {
    "lex calc.l -o lexer.py --test calc.l": "NUMBER",
    "prob check even.pml": "holds",
}
# Commands that need an extra: without it they name it, with it they print this.
NEEDING = {
    "cluster": ("cluster explain --cluster node.yaml --pod pod.yaml", "chosen: one"),
    "rtl": ("rtl cover buffer.sv --top buffer --seconds 1 --json", '"points"'),
}


def run(*words: object, folder: Path) -> str:
    """Run a command and return what it printed; its errors end the program."""
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def bare(python: Path, hagane: Path, folder: Path) -> None:
    """Use the command and the tools of the bare core, and be told what the others need."""
    version = run(hagane, "--version", folder=folder)
    assert version == run(python, "-m", "hagane", "--version", folder=folder)
    shown = run(python, "-m", "hagane", "run", "relu.onnx", "--random", "1", folder=folder)
    assert "y: float32[1]" in shown, shown
    for command, expected in BARE.items():
        shown = run(hagane, *command.split(), folder=folder)
        assert expected in shown, shown
    for extra, (command, _) in NEEDING.items():
        words = [hagane, *command.split()]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done
        assert f"hagane[{extra}]" in done.stderr, done.stderr


def together(extras: Iterable[str]) -> str:
    """Return the light extras that no command needs, as one installation names them."""
    return ",".join(extra for extra in extras if extra not in {*HEAVY, *NEEDING})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="install the heavy extras too")
    every = parser.parse_args().all
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = sorted(set(project["optional-dependencies"]) - NOT_FOR_USERS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "clean", with_pip=True)
        python = folder / "clean" / "bin" / "python"
        hagane = folder / "clean" / "bin" / "hagane"
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, folder=folder)
        (wheel,) = folder.glob("hagane-*.whl")
        for file, text in FILES.items():
            (folder / file).write_text(text, encoding="utf-8")
        for extra in ["", *extras] if every else ["", *NEEDING, together(extras)]:
            wanted = f"{wheel}[{extra}]" if extra else str(wheel)
            run(*pip, "install", "--no-compile", "--quiet", wanted, folder=folder)
            answer = run(python, "-c", PROGRAM, folder=folder)
            if not extra:
                bare(python, hagane, folder)
            elif extra in NEEDING:
                command, expected = NEEDING[extra]
                shown = run(hagane, *command.split(), folder=folder)
                assert expected in shown, shown
            name = f"with '{extra}'" if extra else "bare"
            print(f"{wheel.name} {name}: {answer.strip()}", flush=True)


if __name__ == "__main__":
    main()
