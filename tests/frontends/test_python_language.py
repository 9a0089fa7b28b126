"""Python itself: every form that models use, interpreted over types."""

from __future__ import annotations

from pathlib import Path

import pytest

from .checking import check_text

X = {"x": "float32[b, 7]"}

# (body of a function of x, the printed type of what it returns)
FORMS = [
    ("return x", "torch.Tensor(dtype=float32, shape=(b, 7))"),
    ("return x.shape", "(int(b), int(7))"),
    ("b, c = x.shape\nreturn b * c + 1", "int(7*b + 1)"),
    ("return len(x), x.ndim, x.size(-1)", "(int(b), int(2), int(7))"),
    ("a, *rest, z = [1, 2, 3, 4]\nreturn rest", "[int(2), int(3)]"),
    ("(a, (c, d)), e = (1, (2, 3)), 4\nreturn a + c + d + e", "int(10)"),
    ("n = 0\nfor i in range(5):\n    if i == 3:\n        continue\n    n += i\nreturn n", "int(7)"),
    ("made = type('Made', (), {'size': 5, 'twice': lambda self: 2 * self.size})\nreturn made().twice()",
     "int(10)"),
    ("items = [1] * x.size(0)\ndel items[:]\nreturn len(items)", "int(0)"),
    ("import inspect\nreturn inspect.isfunction(len), inspect.isfunction(lambda: 1), "
     "inspect.isclass(dict)", "(bool(False), bool(True), bool(True))"),
    ("import os\nos.environ['SEED'] = '1'\nreturn len(x.shape)", "int(2)"),
    ("names = {0: (1, 2), 1: (3, 4)}\na, b = names[x.size(0)]\nreturn x.new_ones(4)[a:b].ndim", "int(1)"),
    ("for i in range(5):\n    if i == 3:\n        break\nelse:\n    i = 9\nreturn i", "int(3)"),
    ("for i in range(3):\n    pass\nelse:\n    i = 9\nreturn i", "int(9)"),
    ("n = 1\nwhile n < 20:\n    n *= 3\nreturn n", "int(27)"),
    ("return [i * i for i in range(6) if i % 2]", "[int(1), int(9), int(25)]"),
    ("return {k: v for k, v in zip('ab', (1, 2))}", "{'a': int(1), 'b': int(2)}"),
    ("return sorted({3, 1, 2}, reverse=True)", "[int(3), int(2), int(1)]"),
    ("return sum(i for i in range(4))", "int(6)"),
    ("return [(i, j) for i in range(2) for j in range(i + 1)]",
     "[(int(0), int(0)), (int(1), int(0)), (int(1), int(1))]"),
    ("f = lambda a, k=2: a * k\nreturn f(3), f(3, k=4)", "(int(6), int(12))"),
    ("return f'{x.shape[1]:03d}-{2 + 3}'", "str('007-5')"),
    ("return 'a,b'.split(','), '-'.join(['p', 'q']).upper()", "([str('a'), str('b')], str('P-Q'))"),
    ("return x.shape[0] if x is not None else 3", "int(b)"),
    ("return (y := x.shape[1]) + y", "int(14)"),
    ("return x.shape == (4, 7), x.shape[1] == 7 and 'yes'", "(bool, str('yes'))"),
    ("return 1 < 2 < 3, 3 in [1, 2], 'k' not in {'k': 1}", "(bool(True), bool(False), bool(False))"),
    ("return isinstance(x, torch.Tensor), isinstance(3, (int, str)), isinstance(x, nn.Module)",
     "(bool(True), bool(True), bool(False))"),
    ("return max(x.shape[1], 3), min([4, 2]), abs(-3), round(2.6), divmod(7, 2)",
     "(int(7), int(2), int(3), int(3), (int(3), int(1)))"),
    ("return math.ceil(x.shape[0] / 2), math.sqrt(16), math.floor(7 / 2)",
     "(int(ceil(b / 2)), float(4.0), int(3))"),
    ("return int(x.shape[0] * 0.5), x.shape[0] // 2, -(-x.shape[0] // 3), x.shape[0] % 4",
     "(int(b // 2), int(b // 2), int(ceil(b / 3)), int(b - 4*(b // 4)))"),
    ("l = [3]\nl.append(4)\nl.extend((5, 6))\nl.insert(0, 2)\nl.pop()\nl[1:2] = [9]\nreturn l",
     "[int(2), int(9), int(4), int(5)]"),
    ("d = {'a': 1}\nd['b'] = 2\nd.update(c=3)\nd.setdefault('e', 5)\nreturn d.pop('a'), list(d)",
     "(int(1), [str('b'), str('c'), str('e')])"),
    ("return [*range(2), *(5, 6)], (*'ab', 1), {**{'a': 1}, 'b': 2}",
     "([int(0), int(1), int(5), int(6)], (str('a'), str('b'), int(1)), {'a': int(1), 'b': int(2)})"),
    ("def g(a, /, b, *args, c, d=4, **kw):\n    return a, b, args, c, d, kw\n"
     "return g(1, 2, 3, c=5, e=6)",
     "(int(1), int(2), (int(3),), int(5), int(4), {'e': int(6)})"),
    ("n = 0\ndef up():\n    nonlocal n\n    n += 1\nup()\nup()\nreturn n", "int(2)"),
    ("def g():\n    yield 1\n    yield from (2, 3)\nreturn list(g())", "[int(1), int(2), int(3)]"),
    ("from functools import partial, reduce\n"
     "return partial(lambda a, b: a - b, 5)(3), reduce(lambda a, b: a * b, [2, 3, 4], 1)",
     "(int(2), int(24))"),
    ("import itertools\nreturn list(itertools.chain([1], [2])), list(itertools.product('a', (1, 2)))",
     "([int(1), int(2)], [(str('a'), int(1)), (str('a'), int(2))])"),
    ("it = iter([1, 2])\nreturn next(it), next(it), next(it, None)", "(int(1), int(2), None)"),
    ("try:\n    n = int('x' if False else '3')\nexcept ValueError:\n    n = 0\nfinally:\n    m = 1\n"
     "return n + m", "int(4)"),
    ("try:\n    raise ValueError('no')\nexcept ValueError as e:\n    return 5", "int(5)"),
    ("with torch.no_grad(), torch.enable_grad():\n    y = x * 2\nreturn y.shape[1]", "int(7)"),
    ("class P:\n    k = 3\n    def __init__(self, n): self.n = n\n"
     "    def __call__(self, m): return self.n * m + self.k\n"
     "    def __len__(self): return 2\n    def __getitem__(self, i): return i * 10\n"
     "    @property\n    def double(self): return 2 * self.n\n"
     "p = P(4)\nreturn p(2), p.double, len(p), p[3], list(p), P.k",
     "(int(11), int(8), int(2), int(30), [int(0), int(10)], int(3))"),
    ("@dataclass\nclass C:\n    a: int\n    b: int = 2\n    def total(self): return self.a + self.b\n"
     "return C(1).total(), C(a=1, b=5).b", "(int(3), int(5))"),
    ("from enum import Enum\nclass M(Enum):\n    A = 'a'\n    B = 'b'\n"
     "m = M('b')\nreturn m is M.B, m.value, m == M.A, [k.name for k in (M.A, M.B)]",
     "(bool(True), str('b'), bool(False), [str('A'), str('B')])"),
    ("from typing import NamedTuple\nclass T(NamedTuple):\n    a: int\n    b: int = 4\n"
     "t = T(1)\np, q = t\nreturn t.b, t[0], p + q", "(int(4), int(1), int(5))"),
    ("from collections import OrderedDict, defaultdict, namedtuple\nd = defaultdict(list)\n"
     "d['k'].append(1)\nP = namedtuple('P', 'u v')\nreturn d['k'], P(1, 2).v, list(OrderedDict(a=1))",
     "([int(1)], int(2), [str('a')])"),
    ("def deco(f):\n    def inner(*a, **k):\n        return f(*a, **k) + 1\n    return inner\n"
     "@deco\ndef g(n): return n * 2\nreturn g(3)", "int(7)"),
    ("del x\nreturn 1", "int(1)"),
    ("return getattr(x, 'shape')[1], hasattr(x, 'nothing'), callable(f)",
     "(int(7), bool(False), bool(True))"),
    ("y = x\ny += 1\ny -= 0.5\nreturn y", "torch.Tensor(dtype=float32, shape=(b, 7))"),
    ("a = [0] * 3\na[-1] = 5\nreturn a, [x] * 2",
     "([int(0), int(0), int(5)], [torch.Tensor(dtype=float32, shape=(b, 7)), "
     "torch.Tensor(dtype=float32, shape=(b, 7))])"),
    ("global G\nG = 4\nreturn G", "int(4)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), FORMS, ids=range(len(FORMS)))
def test_a_form_of_python_gets_its_type(tmp_path: Path, body: str, expected: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    report = check_text(tmp_path, f"def f(x):\n{lines}\n", X)
    assert report.errors == []
    assert report.unknown == []
    assert report.returned == expected


def test_classes_inherit_override_and_call_super(tmp_path: Path) -> None:
    source = """
    class Base(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n
        def forward(self, x):
            return self.head(self.body(x))
        def head(self, x):
            return x
    class Mixin:
        def head(self, x):
            return super().head(x)[:, :2]
    class Net(Mixin, Base):
        def __init__(self, n):
            super().__init__(n)
            self.layers = nn.ModuleList([nn.Linear(n, n) for _ in range(3)])
            self.register_buffer("scale", torch.ones(n))
        @classmethod
        def make(cls, n): return cls(n)
        @staticmethod
        def half(x): return x / 2
        def body(self, x):
            for layer in self.layers:
                x = layer(x)
            return nn.Linear(self.n, 5)(self.half(x) * self.scale)
    """
    report = check_text(tmp_path, source, X, target="Net", make="Net.make(7)")
    assert report.errors == []
    assert report.returned == "torch.Tensor(dtype=float32, shape=(b, 2))"


def test_branches_are_both_followed_and_joined_with_their_symbols(tmp_path: Path) -> None:
    source = """
    def f(x):
        if x.shape[0] > 4:
            y = x[:4]
        else:
            y = x
        return y
    """
    report = check_text(tmp_path, source, X)
    assert report.returned == "torch.Tensor(dtype=float32, shape=((4 if x.shape[0] > 4 else b), 7))"
    assert report.conditions == ["x.shape[0] > 4"]
    known = check_text(tmp_path, source, X, sizes={"b": 9})
    assert "4 ((4 if x.shape[0] > 4 else b))" in str(known.returned)


def test_an_early_return_restricts_what_comes_after_it(tmp_path: Path) -> None:
    source = """
    def f(x, y):
        if x.shape[1] != y.shape[1]:
            return x
        return x + y
    """
    report = check_text(tmp_path, source, {"x": "float32[b, n]", "y": "float32[b, m]"})
    assert report.errors == []
    assert report.returned == "torch.Tensor(dtype=float32, shape=(b, n))"


def test_different_symbols_are_not_equal_because_an_example_makes_them_so(tmp_path: Path) -> None:
    source = """
    def f(x, y):
        return x + y
    """
    inputs = {"x": "float32[n=2, c=3]", "y": "float32[m=2, c=3]"}
    report = check_text(tmp_path, source, inputs)
    (problem,) = report.errors
    assert problem.code == "shape-mismatch"
    assert "axis -2 has sizes n and m" in problem.message
    assert problem.counterexample["n"] != problem.counterexample["m"]


def test_an_error_in_one_branch_says_under_which_condition(tmp_path: Path) -> None:
    source = """
    def f(x):
        if x.shape[0] % 2 == 1:
            x = torch.cat([x, x[:1, :3]], 0)
        return x
    """
    report = check_text(tmp_path, source, X)
    (problem,) = report.errors
    assert problem.condition == "x.shape[0] % 2 == 1"
    assert problem.counterexample["b"] % 2 == 1
    assert problem.text.strip() == "x = torch.cat([x, x[:1, :3]], 0)"
    assert any("argument x: float32(b, 7)" in step for step in problem.steps)
    assert report.returned == "torch.Tensor(dtype=float32, shape=(b, 7))"


def test_a_raise_under_a_condition_is_an_assumption_and_one_without_an_error(
    tmp_path: Path,
) -> None:
    guarded = """
    def f(x):
        if x.shape[0] % 8:
            raise ValueError("no")
        return x.view(8, -1)
    """
    report = check_text(tmp_path, guarded, X)
    assert report.errors == []
    assert [note.message for note in report.assumptions] == [
        "not (x.shape[0] % 8), else ValueError('no')"
    ]
    report = check_text(tmp_path, "def f(x):\n    raise RuntimeError('always')\n", X)
    assert [p.message for p in report.errors] == ["raises RuntimeError('always')"]


def test_recursion_that_ends_is_followed_and_one_that_does_not_is_told(tmp_path: Path) -> None:
    ends = """
    def g(n):
        return 1 if n == 0 else n * g(n - 1)
    def f(x):
        return g(5)
    """
    assert check_text(tmp_path, ends, X).returned == "int(120)"
    endless = """
    def f(x):
        return f(x)
    """
    report = check_text(tmp_path, endless, X)
    assert "recursion of 'f' without an end in sight" in str(report.unknown)


def test_what_is_not_understood_is_unknown_and_never_clean(tmp_path: Path) -> None:
    source = """
    import somelib
    def f(x):
        return somelib.magic(x)
    """
    report = check_text(tmp_path, source, X)
    (note,) = report.unknown
    assert note.message.startswith("'somelib.magic' is not understood: 'somelib' is no library")
    assert report.returned == "unknown"


# (body, the code, a part of the message)
WRONG = [
    ("return y", "name", "NameError: the name 'y' is not defined"),
    ("return x.nothing()", "attribute", "'torch.Tensor' has no attribute 'nothing'"),
    ("a, b, c = x.shape", "unpack", "expected 3 values to unpack, got 2"),
    ("return [1, 2][5]", "index", "index 5 is out of range for 2 items"),
    ("return {'a': 1}['b']", "key", "expected one of the keys 'a', got 'b'"),
    ("return x.shape[2]", "index", "index 2 is out of range"),
    ("return 1 + 'a'", "type", "unsupported operand"),
    ("return len(3)", "type", "not iterable"),
    ("return (lambda a: a)()", "call", "is missing the argument 'a'"),
    ("return (lambda a: a)(1, b=2)", "call", "got an unexpected argument 'b'"),
    ("return 3 // (7 - x.shape[1])", "value", "ZeroDivisionError"),
    ("assert x.shape[1] == 8", "assertion", "the assertion fails: x.shape[1] == 8"),
    ("if x:\n        pass", "value", "truth value of a tensor with more than one element"),
    ("for _ in 3:\n        pass", "type", "int(3) is not iterable"),
    ("return nn.Linear(7)(x)", "call", "missing a required argument: 'out_features'"),
]


@pytest.mark.parametrize(("body", "code", "message"), WRONG)
def test_a_mistake_in_plain_python_is_an_error(
    tmp_path: Path, body: str, code: str, message: str
) -> None:
    report = check_text(tmp_path, f"def f(x):\n    {body}\n", X)
    assert report.errors, report
    assert report.errors[0].code == code
    assert message in report.errors[0].message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("async def g(): return x\n    return g()", "'g' is a coroutine"),
        (
            "return eval(input())",
            (
                "'eval' of a program that is not known; import the module, or name the class in a "
                "dictionary"
            ),
        ),
    ],
)
def test_forms_that_are_not_followed_are_told(tmp_path: Path, body: str, reason: str) -> None:
    report = check_text(tmp_path, f"def f(x):\n    {body}\n", X)
    assert report.exit_code == 2
    assert reason in [note.message for note in report.unknown]


def test_a_failure_of_the_checker_itself_is_told_and_never_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hagane.frontends.python.enter.interpreter import Interpreter

    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(Interpreter, "tensor_operator", broken)
    report = check_text(tmp_path, "def f(x):\n    return x + 1\n", X)
    assert report.exit_code == 2
    (note,) = report.notices
    assert "the checker itself failed here (KeyError('lost'))" in note.message
