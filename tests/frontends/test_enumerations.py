"""Enumerations of the program: members of every kind, by value, by name, as keys."""

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
    "members, iteration, values, names": """
        import torch
        from enum import Enum
        class C(Enum):
            A = 1
            B = 2
            OTHER = A
            def double(self): return self.value * 2
            @classmethod
            def first(cls): return list(cls)[0]
        assert torch.ones([c.value for c in C]).shape == (1, 2)
        assert len(C) == 2 and len(C.__members__) == 3 and C.OTHER is C.A and C.A in C
        assert torch.ones(C.B.double(), C(2).value, C["B"].value).shape == (4, 2, 2)
        assert C.first() is C.A and C.A != C.B and {C.A: 3}[C.OTHER] == 3
        assert [c.name for c in reversed(C)] == ["B", "A"]
        """,
    "numbers and texts that are members": """
        import torch
        from enum import Enum, IntEnum
        class N(IntEnum):
            P = 3
            Q = 4
        class S(str, Enum):
            X = "x"
            Y = "why"
        assert torch.ones(N.P, N.P + N.Q).shape == (3, 7)
        assert torch.ones(2, N.Q)[:, N.P].shape == (2,) and N.P < N.Q and N.P.name == "P"
        assert S.X == "x" and S("why") is S.Y and len(S.Y) == 3 and S.X.upper() == "X"
        assert isinstance(S.X, S) and isinstance(S.X, str) and type(N.P) is N
        assert str(S.X) == "S.X" and f"{N.P}" == "3"
        """,
    "numbers of their own, flags, several values": """
        import torch
        from enum import Enum, Flag, auto
        class A(Enum):
            U = auto()
            V = auto()
        class F(Flag):
            R = auto()
            W = auto()
            X = auto()
        class T(Enum):
            E = (3, "three")
            def __init__(self, n, text):
                self.n, self.text = n, text
        assert torch.ones(A.U.value, A.V.value).shape == (1, 2)
        both = F.R | F.X
        assert F.R in both and F.W not in both and both.value == 5 and not (both & F.W)
        assert torch.ones(T.E.n, len(T.E.text)).shape == (3, 5)
        assert len(Enum("G", "a b c")) == 3 and Enum("H", {"a": 5}).a.value == 5
        """,
    "members of a class with its own __new__ and __eq__ are keys": """
        import torch
        from collections import defaultdict
        from enum import Enum
        from types import DynamicClassAttribute
        class Event:
            def __init__(self, value, every=None, name=None):
                self.every = every
                if not hasattr(self, "_value_"):
                    self._value_ = value
                if not hasattr(self, "_name_"):
                    self._name_ = name
            @DynamicClassAttribute
            def name(self): return self._name_
            def __call__(self, every): return Event(self._value_, every, self.name)
            def __eq__(self, other): return self.name == other.name
            def __hash__(self): return hash(self._name_)
        class Named(Event, Enum):
            def __new__(cls, value):
                made = Event.__new__(cls)
                made._value_ = value
                return made
        class Events(Named):
            START = "start"
            STOP = "stop"
        sizes = {Events.START: 3, Events.STOP: 4}
        assert torch.ones(sizes[Events.STOP(every=3)]).shape == (4,)
        held = defaultdict(list)
        held[Events.START].append(5)
        for event in (Events.START, Events.STOP(every=2)):
            held[event].append(6)
        assert len(held) == 2 and len(held[Events.START]) == 2 and Events.STOP(7) in held
        """,
}


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN.keys())
def test_what_enumerations_do_is_understood(text: str, tmp_path: Path) -> None:
    report = checked(tmp_path, text)
    assert [error.message for error in report.errors] == []
    assert [note.message for note in report.unknown] == []
    assert report.exit_code == 0


WRONG = {
    "C(7)": "ValueError: 7 is not a valid C; valid are 1, 2",
    "C['Z']": "KeyError: 'Z'; C has A, B",
    "C.A.size": "C has no attribute 'size'",
    "torch.ones(C.A)": "torch.ones: expected an integer as size, got C",
}


@pytest.mark.parametrize(("expression", "message"), WRONG.items())
def test_what_enumerations_lack_is_an_error(expression: str, message: str, tmp_path: Path) -> None:
    text = "import torch\nfrom enum import Enum\nclass C(Enum):\n  A = 1\n  B = 2\n"
    (error,) = checked(tmp_path, text + expression).errors
    assert message in error.message
    assert error.place.line == 6
