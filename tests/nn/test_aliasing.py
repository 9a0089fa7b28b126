"""Places of Chainer's modules under ``hagane chainer``, as programs name them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PATHS = """
dataset.convert.concat_examples dataset.dataset_mixin.DatasetMixin dataset.iterator.Iterator
datasets.mnist.get_mnist datasets.sub_dataset.SubDataset datasets.tuple_dataset.TupleDataset
device_resident.DeviceResident distribution.Distribution distributions.normal.Normal
function_hooks.timer.TimerHook functions.activation.relu.relu iterators.order_samplers.OrderSampler
links.rnn.n_step_rnn.argsort_list_descent optimizer_hooks.weight_decay.WeightDecay
optimizers.adam.AdamRule optimizers.sgd.SGDRule
training.extensions.value_observation.observe_value training.triggers.once_trigger.OnceTrigger
training.updaters.standard_updater.StandardUpdater utils.walker_alias.WalkerAlias
""".split()

PROGRAM = f"""
import functools, sys
import numpy
import chainer
import chainer.training.extensions
from chainer.training.extensions.value_observation import observe_lr
for path in {PATHS}:
    functools.reduce(getattr, path.split("."), chainer)
assert not hasattr(chainer.datasets, "nothing")
assert not hasattr(chainer.functions, "nothing")
from chainer.links.caffe import CaffeFunction
for refused in (CaffeFunction, chainer.links.caffe.CaffeFunction):
    try:
        refused("a.caffemodel")
    except NotImplementedError as error:
        assert "CaffeFunction: hagane reads no models of Caffe, as 'a.caffemodel'" in str(error)
    else:
        raise AssertionError
from chainer.functions.activation.sigmoid import Sigmoid
(y,) = Sigmoid().apply((chainer.Variable(numpy.zeros(2, "f")),))
assert (y.array == 0.5).all() and y.creator.label == "Sigmoid"
try:
    from chainer.functions.activation.elu import ELU
except ImportError as error:
    assert "cannot import name 'ELU' from 'chainer.functions.activation.elu'" in str(error)
    assert "call the function, or derive from chainer.FunctionNode" in str(error)
else:
    raise AssertionError
print("found")
"""

REPLACING = """
from unittest import mock
import numpy
import chainer
import chainer.functions.array.flip
from chainer import links

link = links.NegativeSampling(2, [3, 2, 1], 2)
x, t = numpy.ones((1, 2), "f"), numpy.zeros(1, "i")
place = "chainer.functions.loss.negative_sampling.negative_sampling"
with mock.patch(place, return_value="another") as replaced:
    print(link(x, t), replaced.call_count)
print(type(link(x, t)).__name__, chainer.functions.flip(x, 0).shape)
"""


def test_files_of_chainer_are_attributes_of_their_packages(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "hagane", "chainer", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("found\n", "")


WITHOUT_GUARD = """
import chainer

def doubled(x):
    return x * 2

data = chainer.datasets.TransformDataset(list(range(8)), doubled)
iterator = chainer.iterators.MultiprocessIterator(data, 4, shuffle=False, n_processes=1)
print(next(iterator), iterator.start_method)
iterator.finalize()
"""
SPAWNING = """
import multiprocessing
import numpy
import chainer
from chainer import functions

def work():
    found = chainer.Variable.__module__.partition(".")[0]
    print(found, functions.relu(numpy.ones(1, "f")).array, flush=True)

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    process = multiprocessing.Process(target=work)
    process.start()
    process.join()
"""


def _output(folder: Path, program: str) -> str:
    script = folder / "script.py"
    script.write_text(program)
    command = [sys.executable, "-m", "hagane", "chainer", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_workers_of_a_script_without_a_main_guard_are_forked_as_chainers(tmp_path: Path) -> None:
    assert _output(tmp_path, WITHOUT_GUARD) == "[0, 2, 4, 6] fork\n"


def test_processes_that_import_the_script_anew_find_hagane_too(tmp_path: Path) -> None:
    assert _output(tmp_path, SPAWNING) == "hagane [1.]\n"


def test_links_use_a_function_that_a_program_puts_in_place_of_chainers(tmp_path: Path) -> None:
    assert _output(tmp_path, REPLACING) == "another 1\nVariable (1, 2)\n"


WHOLE = """
import chainer
import hagane
from chainer import Variable
import chainer.functions as F

print(chainer.__version__, chainer.__name__, hagane.__version__ == chainer.__version__)
assert chainer.Variable is Variable is hagane.Variable and chainer.functions is F
chainer.disable_experimental_feature_warning = True
assert hagane.disable_experimental_feature_warning
chainer.own = 3
assert hagane.own == 3
del chainer.own
assert not hasattr(hagane, "own") and "functions" in dir(chainer)


class Model(chainer.Chain):
    def __init__(self):
        super().__init__(l=chainer.links.Linear(4, 3))

    def forward(self, x):
        return chainer.functions.relu(self.l(x)) + chainer.functions.sum(x)


print([node.op_type for node in hagane.capture(Model(), "float32[batch, 4]").graph][:2])
"""


def test_programs_see_the_version_of_chainer_that_they_were_written_for(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WHOLE)
    command = [sys.executable, "-m", "hagane", "chainer", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("7.8.1 chainer False\n['Gemm', 'Relu']\n", "")


def test_scripts_that_import_chainermn_are_told_what_to_leave_out(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("try:\n    import cupy\nexcept ImportError:\n    pass\nimport chainermn\n")
    command = [sys.executable, "-m", "hagane", "chainer", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'chainermn'" in done.stderr
    assert "hagane trains in one process and has no communicators; leave out" in done.stderr
    assert "cupy" not in done.stderr
