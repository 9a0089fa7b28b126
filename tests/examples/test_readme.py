"""The commands of the README run as they are printed."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# What is not run here, with the reason.
LEFT_OUT = {
    "make demo": "it fetches a model from the network",
    "make test": "this is one of its tests",
    "hagane inspect ch_PP-OCRv4_det_infer.onnx": "the model is fetched from the network",
}
# Commands that go on until they are ended, and what they say before.
ENDLESS = {
    "hagane check src/ --watch": "waiting for changes",
    "hagane rl serve": "http://127.0.0.1",
}
# Packages without which a command cannot run.
NEEDED = {"hagane run-python": "onnxruntime", "hagane rtl": "pyslang", "hagane rl": "gymnasium"}


def commands() -> list[str]:
    """Return the commands of all blocks that are no Python, comments and prompts taken away."""
    found: list[str] = []
    for language, block in re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL):
        if language:
            continue
        lines = block.replace("\\\n", " ").splitlines()
        prompted = any(line.startswith("$ ") for line in lines)
        for line in lines:
            if line.startswith("$ ") or not prompted:
                plain = re.sub(r"\s+#.*| {3,}docs/.*", "", line.removeprefix("$ ")).strip()
                found += [plain] if plain.split(" ")[0] in ("hagane", "make") else []
    return found


RUN = [each for each in commands() if not any(each.startswith(start) for start in LEFT_OUT)]

NET = """
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from jaxtyping import Float

class Net(nn.Module):
    def __init__(self, out: int):
        super().__init__()
        self.layer = nn.Linear(3, out)

    def forward(self, x: Float[Tensor, "batch 3"]):
        return torch.relu(self.layer(x))
"""
TRAIN = """
import argparse
import numpy as np
import chainer
from chainer import links as L, training
from chainer.training import extensions

parser = argparse.ArgumentParser()
parser.add_argument("--epoch", type=int)
epochs = parser.parse_args().epoch
random = np.random.default_rng(0)
x = random.standard_normal((20, 8)).astype(np.float32)
data = chainer.datasets.TupleDataset(x, (x[:, 0] > 0).astype(np.int32))
model = L.Classifier(L.Linear(8, 2))
optimizer = chainer.optimizers.SGD().setup(model)
batches = chainer.iterators.SerialIterator(data, 10)
updater = training.StandardUpdater(batches, optimizer)
trainer = training.Trainer(updater, (epochs, "epoch"), out="result")
trainer.run()
print("epochs", updater.epoch)
"""
PREDICT = """
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
image = np.ones((1, 3, 224, 224), np.float32)
print(type(session).__module__, session.run(None, {"image": image})[0].shape)
"""
DATA = """
import numpy as np

def make():
    return [{"image": np.full((1, 3, 224, 224), i, np.float32)} for i in range(4)]
"""
DATASET = """
import numpy as np

def make():
    return [np.full(8, i, np.float32) for i in range(64)]
"""
CALC = r"""
%%
[0-9]+    { return NUMBER; }
[-+*/()]  { return OPERATOR; }
[ \t\n]+  ;
%%
"""
FIFO = """
module fifo (input logic clk, input logic rst, input logic push,
             input logic pop, output logic [2:0] n);
  always_ff @(posedge clk)
    if (rst) n <= 0;
    else if (push && !pop && n < 4) n <= n + 1;
    else if (pop && !push && n > 0) n <= n - 1;
endmodule
"""
CLUSTER = ROOT / "examples" / "cluster" / "policies.yaml"


def write_model(path: Path, batch: int | str) -> None:
    """Write a small network over so many pictures."""
    random = np.random.default_rng(0)
    weight = random.standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], strides=[8, 8], name="first"),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "pictures",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, 224, 224])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 4, 1, 1])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files that the commands name."""
    from PIL import Image

    write_model(tmp_path / "model.onnx", "batch")
    Image.new("RGB", (224, 224), "grey").save(tmp_path / "cat.png")
    (tmp_path / "src").mkdir()
    texts = {
        "model.py": NET, "src/net.py": NET, "train_mnist.py": TRAIN, "predict.py": PREDICT,
        "d.py": DATA, "dataset.py": DATASET, "calc.l": CALC, "fifo.sv": FIFO,
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (block,) = re.findall(r"\$ cat even\.pml\n(.*?)\n\$", README, re.DOTALL)
    (tmp_path / "even.pml").write_text(block + "\n", encoding="utf-8")
    shutil.copy(ROOT / "examples" / "prob" / "dice.pml", tmp_path)
    shutil.copy(CLUSTER, tmp_path / "cluster.yaml")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    made = tmp_path / "bin" / "hagane"
    made.parent.mkdir()
    made.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m hagane "$@"\n')
    made.chmod(0o755)
    return tmp_path


def started(command: str, folder: Path) -> subprocess.Popen[str]:
    """Begin a command in a folder, in a group of processes of its own."""
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.Popen(
        ["sh", "-c", f"exec {command}"], cwd=folder, env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        process_group=0,
    )  # fmt: skip


def needed(command: str) -> str | None:
    return next((NEEDED[start] for start in NEEDED if command.startswith(start)), None)


def test_the_readme_has_commands_and_those_left_out_are_among_them() -> None:
    found = commands()
    assert len(found) >= 20
    for start in (*LEFT_OUT, *ENDLESS, *NEEDED):
        assert any(each.startswith(start) for each in found), start


@pytest.mark.long
@pytest.mark.parametrize("command", RUN)
def test_a_command_of_the_readme_runs_as_it_is_printed(command: str, folder: Path) -> None:
    if command.startswith("hagane bench"):  # (With open sizes it asks for them.)
        write_model(folder / "model.onnx", 1)
    package = needed(command)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    if command.startswith("hagane rl serve") and _is_taken(5002):
        pytest.skip("another program listens on the port")
    process = started(command, folder)
    says = next((ENDLESS[start] for start in ENDLESS if command.startswith(start)), None)
    try:
        if says is None:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, f"{command}\n{output}"
            SHOWN.get(command, lambda _: None)(output)
        else:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if says in line:
                    return
            raise AssertionError(f"{command} ended: {''.join(lines)}")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _is_taken(port: int) -> bool:
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


def _shows_even(output: str) -> None:
    block = README[README.index("$ hagane prob check even.pml") :].partition("```")[0]
    assert output.strip() == block.partition("\n")[2].strip()


SHOWN: dict[str, Callable[[str], None]] = {"hagane prob check even.pml": _shows_even}
