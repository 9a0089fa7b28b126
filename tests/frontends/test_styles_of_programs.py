"""Idioms of programs: state that loops change, objects beside arrays, copies, namespaces."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from hagane.checking import SCRIPT, Report, Request, check_source


def checked(folder: Path, text: str) -> Report:
    """Return the report of a script."""
    file = folder / "script.py"
    file.write_text(dedent(text))
    return check_source(Request(file, SCRIPT))


CLEAN = {
    "a state that a loop sets under a condition": """
        import torch
        class State:
            epoch = None
            best = None
            stop = False
        state = State()
        total = torch.zeros(())
        for epoch in range(3):
            for step in range(20):
                total += torch.rand(())
                if (step + 1) % 2 == 0:
                    state.epoch = epoch + (step + 1) / 20
                    if total.item() > 5:
                        state.stop = True
                if state.stop:
                    break
            if state.best is None or total.item() < state.best:
                state.best = total.item()
            if state.epoch is not None:
                assert round(state.epoch, 2) * 2 >= 0
        """,
    "objects have operators of their own beside scalars of NumPy": """
        import numpy as np
        class Value:
            def __init__(self, data):
                self.data = data
            def __add__(self, other):
                return Value(self.data + (other.data if isinstance(other, Value) else other))
            __radd__ = __add__
            def __mul__(self, other):
                return Value(self.data * (other.data if isinstance(other, Value) else other))
            __rmul__ = __mul__
        x = np.random.randn(3)
        made = [1 + -x[k] * Value(2.0) for k in range(3)]
        assert isinstance(sum(made), Value)
        """,
    "a recursion over known objects may be deep": """
        class Node:
            def __init__(self, before=None):
                self.before = before
        last = None
        for _ in range(60):
            last = Node(last)
        order, seen = [], set()
        def visit(node):
            if node is not None and node not in seen:
                seen.add(node)
                visit(node.before)
                order.append(node)
        visit(last)
        assert len(order) == 60 and order[-1] is last
        """,
    "copies of containers and of modules": """
        import copy, torch
        from torch import nn
        class Config(dict):
            def __getattr__(self, name):
                if name in self:
                    return self[name]
                raise AttributeError(name)
            def __setattr__(self, name, value):
                self[name] = value
        class Items(list):
            pass
        config = Config(model=Config(size=3))
        other = copy.deepcopy(config)
        other.model.size = 4
        assert config.model.size == 3 and other.model.size == 4
        items = Items([1, 2])
        more = copy.copy(items)
        more.append(3)
        assert len(items) == 2 and len(more) == 3
        online = nn.Linear(config.model.size, 2)
        target = copy.deepcopy(online)
        both = list(online.parameters()) + list(target.parameters())
        assert len({id(p) for p in both}) == 4 and len(set(both)) == 4
        memo = {online.weight}
        assert online.weight in memo and target.weight not in memo and online.bias not in memo
        """,
    "namespaces as dictionaries": """
        class Trainer:
            def __init__(self, epochs=2, clip=None):
                self.__dict__.update({k: v for k, v in locals().items() if k != "self"})
        class Options:
            def __init__(self, **given):
                vars(self).update(given)
        trainer = Trainer(3)
        assert trainer.epochs == 3 and trainer.clip is None and Options(a=1).a == 1
        def local(x, y=2):
            z = x + y
            return locals()
        assert list(local(1)) == ["x", "y", "z"] and globals()["trainer"].epochs == 3
        """,
    "bytes, groups and sums of exponentials": """
        import itertools
        import numpy as np
        import torch
        vocab = {i: bytes([i]) for i in range(256)}
        assert b"".join(vocab[i] for i in (104, 105)).decode() == "hi"
        best = torch.randn(6, 4).argmax(-1).tolist()
        print([k for k, _ in itertools.groupby(best) if k != 0])
        assert np.logaddexp.reduce(np.zeros((3, 4)), axis=1).shape == (3,)
        """,
    "torch.func.jvp and vjp": """
        import torch
        from torch.func import jvp, vjp, vmap
        y, slope = jvp(lambda a, b: a @ b, (torch.ones(2, 3), torch.ones(3, 4)),
                       (torch.ones(2, 3), torch.ones(3, 4)))
        assert y.shape == slope.shape == (2, 4)
        z, back = vjp(torch.sin, torch.ones(5))
        assert vmap(back)(torch.eye(5))[0].shape == (5, 5) and back(z)[0].shape == (5,)
        """,
}


@pytest.mark.parametrize("name", CLEAN)
def test_programs_are_clean(tmp_path: Path, name: str) -> None:
    report = checked(tmp_path, CLEAN[name])
    assert report.checked
    assert not report.errors
    assert not report.unknown


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("F.mse_loss(torch.zeros(4, 2), torch.zeros(4, 1))", "the one column is compared with each"),
        ("torch.func.jvp(torch.sin, (torch.ones(3),), (torch.ones(2),))",
         "jvp: tangents: expected the shape of"),
        ("torch.func.vjp(torch.sin, torch.ones(3))[1](torch.ones(2))",
         "vjp: cotangents: expected the shape of"),
        ("torch.einsum('ij,jk->iikk', torch.zeros(2, 3), torch.zeros(3, 4))",
         "has 'i' more than once in its result"),
    ],
)  # fmt: skip
def test_faults_are_found(tmp_path: Path, line: str, message: str) -> None:
    text = f"import torch\nimport torch.nn.functional as F\n{line}"
    (found,) = checked(tmp_path, text).errors
    assert message in found.message


def test_members_of_arrays_and_generators(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        """
        import numpy as np
        a = np.arange(12.0).reshape(3, 4)
        assert a.byteswap(inplace=False).shape == (3, 4) and len(a.strides) == 2
        windows = np.lib.stride_tricks.as_strided(a, (2, 4), a.strides)
        assert windows.shape == (2, 4) and np.fft.fft2(a).dtype == np.complex128
        assert np.fft.rfftn(a, axes=(1, 0)).shape == (2, 4) and np.fft.irfft2(a).shape == (3, 6)
        transform = np.fft.rfft
        assert transform(a).shape == (3, 3) and transform(a).dtype == np.complex128
        if a.flags["C_CONTIGUOUS"]:
            a.flags.writeable = True
        state = np.random.get_state()
        np.random.set_state(state)
        one, two = np.random.default_rng(0).spawn(2)
        assert np.random.Generator(np.random.PCG64(3)).random((2, 3)).shape == one.random((2, 3)).shape
        assert np.linalg.multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones(4)]).shape == (2,)
        """,
    )
    assert report.checked
    assert not report.errors
    assert not report.unknown


def test_a_real_transform_takes_as_many_sizes_as_axes(tmp_path: Path) -> None:
    text = "import numpy as np\nnp.fft.fftn(np.ones((2, 3)), s=(2, 2), axes=(0,))"
    (found,) = checked(tmp_path, text).errors
    assert "expected as many sizes as axes (1), got (2, 2)" in found.message
