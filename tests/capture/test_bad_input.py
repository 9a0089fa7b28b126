"""What cannot become a graph is named with its file, its line and what to do instead."""

from __future__ import annotations

import datetime
import importlib
import inspect
import math
import random
import re
import time
import uuid
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.capturing.capture import CaptureNotice
from hagane.errors import CaptureError
from hagane.graph import to_proto

CALLS = 0
TABLE: dict[str, Any] = {}
ITEMS: list[Any] = []


def drawn(x: Any) -> Any:
    return x + torch.rand(3)


def drawn_in_place(x: Any) -> Any:
    return x + torch.empty_like(x).normal_()


def drawn_by_python(x: Any) -> Any:
    return x + random.random()


def clocked(x: Any) -> Any:
    return x * time.perf_counter()


def dated(x: Any) -> Any:
    return x + datetime.datetime.now().second


def numbered(x: Any) -> Any:
    return x + uuid.uuid4().int % 7


def endless(x: Any) -> Any:
    return endless(x * 0.5)


def unending(x: Any) -> Any:
    while True:
        x = x * 0.5
        yield x


def taken(x: Any) -> Any:
    halves = unending(x)
    return next(halves) + next(halves)


def inverted(x: Any) -> Any:
    return x.long() ** -1


def sized(x: Any) -> Any:
    return x.sum().size(0)


def ended_by_data(x: Any) -> Any:
    return ended_by_data(x * 0.5) if x.sum() > 1 else x


def counted(x: Any) -> Any:
    global CALLS
    CALLS = CALLS + 1
    return x + CALLS


def tabled(x: Any) -> Any:
    y = x + 1
    TABLE["last"] = y
    return y


def listed(x: Any) -> Any:
    for _ in range(2):
        ITEMS.append(x)
    return x


def added(x: Any, y: Any) -> Any:
    return x + y


def multiplied(x: Any, y: Any) -> Any:
    return x @ y


def shuffled(x: Any) -> Any:
    random.shuffle(x)
    return x


@pytest.mark.parametrize(
    ("function", "types", "line", "text"),
    [
        (drawn, 1, 1, r"'torch\.rand' cannot be captured: it draws random numbers.*pass them in"),
        (drawn_in_place, 1, 1, r"'torch\.Tensor\.normal_' cannot be captured: it draws random num"),
        (drawn_by_python, 1, 1, "as that of a clock, a random draw or a file; give it as an arg"),
        (shuffled, 1, 1, "random.shuffle draws random numbers, of which a graph has none; draw an"),
        (clocked, 1, 1, "a number that no operator of the graph computes"),
        (dated, 1, 1, "'datetime.datetime.now' is not understood"),
        (numbered, 1, 1, "'uuid.uuid4' is not understood"),
        (endless, 1, 1, "recursion of 'endless' without an end in sight.*write a loop"),
        (inverted, 1, 1, r"Integers to negative integer powers.*convert it with \.float\(\)"),
        (sized, 1, 1, r"dim=int\(0\) of a tensor without axes: torch\.Tensor"),
        (ended_by_data, 1, 1, "recursion of 'ended_by_data' without an end in sight"),
        (counted, 1, 2, "the call sets the global 'CALLS', which a graph cannot; return it"),
        (tabled, 1, 2, "the call changes a dict that it did not make; return the new one"),
        (listed, 1, 2, "the call changes a list that it did not make; return the new one"),
        (added, ("float32[b]", "float32[c]"), 1, "axis -1 has sizes b and c, expected equal"),
        (added, ("float32[3]", "float32[4]"), 1, "axis -1 has sizes 3 and 4, expected equal"),
        (multiplied, ("float32[2, 3]", "int64[3, 4]"), 1, "one element type, got float32 and int"),
    ],
)
def test_a_program_that_no_graph_can_be_is_refused_at_its_line(
    function: Any, types: Any, line: int, text: str
) -> None:
    given = ("float32[3]",) * types if isinstance(types, int) else types
    with pytest.raises(CaptureError) as error:
        hagane.capture(function, *given)
    (problem,) = error.value.problems
    expected = inspect.getsourcelines(function)[1] + line

    assert problem.startswith(f"{__file__}:{expected}:")
    assert re.search(text, problem)
    assert CALLS == 0
    assert not TABLE
    assert not ITEMS


def test_a_generator_without_an_end_is_refused_where_its_loop_begins() -> None:
    with pytest.raises(CaptureError) as error:
        hagane.capture(taken, "float32[3]")
    (problem,) = error.value.problems
    line = inspect.getsourcelines(unending)[1] + 1

    assert problem.startswith(f"{__file__}:{line}: a loop that neither its condition nor break")
    assert problem.endswith("give it an end, as in for _ in range(count)")


def test_a_function_without_source_says_why() -> None:
    names: dict[str, Any] = {}
    exec("f = lambda x: x + 1\ndef g(x):\n    return x", names)
    for name, line in (("f", 1), ("g", 2)):
        text = rf"no Python source that can be captured at <string>:{line}, as an interactive"
        with pytest.raises(CaptureError, match=text):
            hagane.capture(names[name], "float32[3]")
    with pytest.raises(CaptureError, match=r"sin> has no .*: it is written in C; call it in a fun"):
        hagane.capture(math.sin, "float32[3]")


def test_the_text_of_another_function_is_not_taken_for_that_of_one_made_by_exec() -> None:
    """Python reads the lines of the module in which ``exec`` was called."""
    line = inspect.getsourcelines(another)[1]
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile("\n" * (line - 1) + "def another(x):\n    return x + 3", "text", "exec"), names)
    with pytest.raises(CaptureError, match=f"no Python source that can be captured at text:{line}"):
        hagane.capture(names["another"], "float32[3]")


def another(x: Any) -> Any:
    return x + 2


def test_a_file_that_has_changed_since_its_import_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "changing_since.py"
    text = "class Net:\n    def __one(self, x):\n        return x + 1\n\n"
    text += "    def __call__(self, x):\n        return self.__one(x)\n\n\ndef two(x):\n"
    text += "    return [x + n for n in (1, 2)][1]\n"
    file.write_text(text)
    names: dict[str, Any] = {"__name__": "changing_since"}
    exec(compile(text, str(file), "exec"), names)
    file.write_text(text.replace("x + n", "x - n"))
    assert len(hagane.capture(names["Net"](), "float32[3]").graph) == 1
    with pytest.raises(CaptureError, match="or a file that has changed since leaves none"):
        hagane.capture(names["two"], "float32[3]")


def said(x: Any) -> Any:
    print("sum", x.sum())
    assert x.sum() > 0, "positive"
    if x.max() > 1:
        print(x)
    return x + 1


def test_prints_and_asserts_of_tensors_are_left_out_with_a_notice() -> None:
    line = inspect.getsourcelines(said)[1]
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        model = hagane.capture(said, "float32[n]")
    assert [str(notice.message) for notice in notices] == [
        f"{__file__}:{line + 1}: the print of a tensor is left out of the graph",
        f"{__file__}:{line + 2}: the assert of a tensor is left out of the graph",
        f"{__file__}:{line + 4}: the print of a tensor is left out of the graph",
    ]
    assert [value.name for value in model.graph.outputs] == ["output"]


def test_prints_and_asserts_of_tensors_are_outputs_on_request() -> None:
    with pytest.warns(CaptureNotice, match="in a branch or loop is left out of the graph; only"):
        model = hagane.capture(said, "float32[n]", keep_prints=True)
    assert [value.name for value in model.graph.outputs] == ["output", "print.0", "assert.0"]
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    for values in ([1.0, 2.0], [-1.0, 0.5, 0.25]):
        x = np.array(values, np.float32)
        output, total, positive = session.run(None, {"x": x})
        np.testing.assert_allclose(output, x + 1)
        np.testing.assert_allclose(total, x.sum())
        assert positive == (x.sum() > 0)


def unhashable(x: Any) -> Any:
    return TRACED(x)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # TorchScript is deprecated
    TRACED = torch.jit.trace(lambda x: x * 2, torch.zeros(1))


def test_a_compiled_function_without_a_hash_is_named() -> None:
    with pytest.raises(CaptureError, match=r"test_bad_input\.py:\d+: .* is not understood"):
        hagane.capture(unhashable, "float32[n]")


def test_a_refusal_within_a_library_names_its_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "refusing.py").write_text(
        "import torch\n\n\ndef draw(x):\n    return torch.randn(3)\n"
    )
    (tmp_path / "using.py").write_text(
        "import refusing\n\n\ndef model(x):\n    return refusing.draw(x) + x\n"
    )
    for place in (folder, tmp_path):
        monkeypatch.syspath_prepend(place)
    model = importlib.import_module("using").model
    with pytest.raises(CaptureError, match=r"using\.py:5: .*refusing\.py:5\)"):
        hagane.capture(model, "float32[3]")


def test_a_lazy_module_is_to_be_called_first() -> None:
    module = torch.nn.Sequential(torch.nn.LazyLinear(4))
    text = r"'0.weight', '0.bias' have no size before the first call .*; call it once with an input"
    with pytest.raises(CaptureError, match=text):
        hagane.capture(module, "float32[n, 3]")
    module(torch.ones(2, 3))
    assert hagane.capture(module, "float32[n, 3]") is not None
