"""Classes and tools of Python that scripts use around a model."""

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
    "bases of a layer come in Python's order": """
        import torch
        from torch import nn
        class Bottle(nn.Module):
            def forward(self, x):
                flat = super(Bottle, self).forward(x.view(x.size(0) * x.size(1), -1))
                return flat.view(x.size(0), x.size(1), -1)
        class Linear(Bottle, nn.Linear):
            pass
        assert Linear(3, 4)(torch.zeros(2, 5, 3)).shape == (2, 5, 4)
        """,
    "fields of dataclasses": """
        import dataclasses, torch
        from dataclasses import dataclass, field, fields, asdict, replace, astuple, InitVar, KW_ONLY
        import inspect
        from typing import Optional, List
        @dataclass
        class Inner:
            sizes: List[int] = field(default_factory=lambda: [3, 4])
        @dataclass
        class Base:
            n: int
            width: int = field(init=False)
            scale: InitVar[float] = 2.0
            _: KW_ONLY
            inner: Inner = field(default_factory=Inner, metadata={"help": "inner"})
            flag: bool = False
            def __post_init__(self, scale):
                self.width = int(self.n * scale)
        b = Base(4, flag=True)
        assert b.width == 8 and b.flag is True
        assert torch.nn.Linear(b.width, 2)(torch.zeros(1, 8)).shape == (1, 2)
        c = replace(b, n=5, scale=2.0)
        assert c.width == 10, c.width
        d = asdict(c)
        assert d["inner"]["sizes"][1] == 4 and "scale" not in d
        assert [f.name for f in fields(Base)] == ["n", "width", "inner", "flag"]
        assert fields(Base)[0].type is int and fields(b)[3].type == bool
        assert fields(Base)[2].metadata["help"] == "inner"
        for f in fields(Inner):
            assert f.default is dataclasses.MISSING
            if f.default_factory is not dataclasses.MISSING:
                v = f.default_factory()
                assert len(v) == 2
        @dataclass(frozen=True)
        class P:
            x: int = 1
            y: int = 2
            def moved(self): return dataclasses.replace(self, x=self.x + 1)
        assert P().moved().x == 2 and astuple(P()) == (1, 2)
        sig = inspect.signature(P.moved)
        s2 = sig.replace(parameters=[])
        assert len(s2.parameters) == 0
        @dataclass
        class M(torch.nn.Module):
            d: int
            def __post_init__(self):
                super().__init__()
                self.l = torch.nn.Linear(self.d, 2)
            def forward(self, x): return self.l(x)
        M(3)(torch.zeros(1, 3))
        """,
    "classes tell their bases, and descriptors compute": """
        import torch, dataclasses
        class Reg:
            known = {}
            def __init_subclass__(cls, name=None, **kw):
                super().__init_subclass__(**kw)
                Reg.known[name or cls.__name__] = cls
        class A(Reg, name="a"):
            def run(self, x): return x @ torch.zeros(3, 2)
        class B(A): pass
        assert set(Reg.known) == {"a", "B"}
        assert Reg.known["a"]().run(torch.zeros(1, 3)).shape == (1, 2)
        class D:
            def __set_name__(self, owner, name): self.name = "_" + name
            def __get__(self, obj, kind=None): return getattr(obj, self.name)
            def __set__(self, obj, value): setattr(obj, self.name, value * 2)
        class U:
            v = D()
            def __init__(self): self.v = 3
        assert U().v == 6
        @dataclasses.dataclass
        class Q: x: int = 1
        assert hasattr(Q, "__dataclass_fields__") and list(Q.__dataclass_fields__) == ["x"]
        assert hasattr(Q(), "__dataclass_fields__") and dataclasses.is_dataclass(Q) and dataclasses.is_dataclass(Q()) and not dataclasses.is_dataclass(A)
        class Base2:
            def __init_subclass__(cls): dataclasses.dataclass(cls, kw_only=True)
        class E2(Base2):
            n: int = 4
            m: int
        assert E2(m=3).n == 4
        """,
    "functions have attributes": """
        import torch, functools
        def f(x):
            f.calls += 1
            return x
        f.calls = 0
        f(1); f(2)
        assert f.calls == 2
        def deco(fn):
            @functools.wraps(fn)
            def w(*a):
                return fn(*a)
            w.inner = fn
            w.k = torch.zeros(2)
            return w
        @deco
        def g(x): return x
        assert g.k.shape == (2,) and g.inner(3) == 3
        def two(fn):
            fn.mark = True
            return fn
        class A:
            @two
            def m(self): return 1
            def n(self): return 2
            z = 3
        ms = [n for n in dir(A) if getattr(getattr(A, n), "mark", False)]
        assert ms == ["m"], ms
        a = A(); a.q = 1
        assert "q" in dir(a) and "z" in dir(a) and "n" in dir(A)
        assert [n for n in dir() if n == "ms"] == ["ms"]
        def make(n):
            def h(x): return x
            h.n = n
            return h
        p, q = make(1), make(2)
        assert p.n == 1 and q.n == 2
        assert hasattr(p, "n") and not hasattr(p, "zz")
        """,
    "commands of a script": """
        import argparse, torch
        from argparse import Namespace
        base = argparse.ArgumentParser(add_help=False)
        base.add_argument("--width", type=int, default=8)
        base.set_defaults(kind=torch.float32)
        p = argparse.ArgumentParser(parents=[base])
        sub = p.add_subparsers(dest="cmd", required=True)
        def train(a):
            lin = torch.nn.Linear(a.width, a.out)
            assert lin(torch.zeros(2, 8)).shape == (2, 3)
        def test(a):
            torch.nn.Linear(a.width, 4)(torch.zeros(2, 9))
        t = sub.add_parser("train", parents=[base], help="x", aliases=["t"])
        t.add_argument("--out", type=int, default=3)
        t.set_defaults(func=train)
        v = sub.add_parser("test")
        v.set_defaults(func=test)
        args = p.parse_args(["train"])
        assert torch.zeros(2, dtype=args.kind).dtype == torch.float32
        args.func(args)
        if args.cmd == "train":
            train(args)
        elif args.cmd == "test":
            test(args)
        n = Namespace(**vars(args)); m = argparse.Namespace(a=1)
        print(n.width, m.a)
        q = p.parse_args(["train", "--out", "5"])
        assert q.out == 5 and q.cmd == "train" and q.func is train
        """,
    "threads, processes, pools and queues": """
        import threading, queue, multiprocessing as mp, torch
        def work(q, n): q.put(torch.zeros(n, 3))
        q = queue.Queue()
        ts = [threading.Thread(target=work, args=(q, 4), daemon=True) for _ in range(2)]
        for t in ts: t.start()
        for t in ts: t.join()
        x = q.get()
        assert x.shape == (4, 3)
        lock = threading.Lock()
        with lock: pass
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as ex:
            r = list(ex.map(lambda n: torch.zeros(n), [1, 2]))
            f = ex.submit(torch.zeros, 3)
            assert f.result().shape == (3,)
        assert r[1].shape == (2,)
        import torch.multiprocessing as tmp_
        class W(threading.Thread):
            def __init__(self, n):
                super().__init__(daemon=True)
                self.n = n
            def run(self):
                self.out = torch.zeros(self.n)
        w = W(3); w.start(); w.join()
        assert w.out.shape == (3,)
        def go(rank, n): torch.nn.Linear(n, 2)(torch.zeros(1, n))
        with mp.Pool(2) as pool:
            y = pool.map(torch.zeros, [1, 2])
        assert y[1].shape == (2,)
        p = tmp_.Process(target=go, args=(0, 3)); p.start(); p.join()
        tmp_.spawn(go, args=(3,), nprocs=2)
        """,
    "handlers of logging, and times as texts": """
        import logging, sys, threading, time
        _lock = threading.Lock()
        _default_handler = None
        def conf():
            global _default_handler
            with _lock:
                if _default_handler:
                    return
                _default_handler = logging.StreamHandler()
                if sys.stderr is None:
                    sys.stderr = open("x", "w")
                _default_handler.flush = sys.stderr.flush
                lib = logging.getLogger("a")
                lib.addHandler(_default_handler)
                lib.setLevel(logging.INFO)
                f = logging.Formatter("[%(levelname)s] %(message)s")
                _default_handler.setFormatter(f)
                lib.propagate = False
                for h in lib.handlers:
                    h.setLevel(10)
        conf()
        h = logging.FileHandler("x.log"); h.setLevel(logging.DEBUG)
        log = logging.getLogger(); log.addHandler(h); log.handlers.clear(); print(log.level, log.name)
        class Own(logging.Handler):
            def emit(self, record): print(record)
        o = Own(); o.setLevel(3); log.addHandler(o)
        class F2(logging.Formatter):
            def format(self, record): return super().format(record)
        h.setFormatter(F2("%(x)s"))
        t0 = time.perf_counter(); t = time.strftime("%Y"); print(t + "x")
        """,
    "items taken from a place that is drawn": """
        import torch, random
        k = torch.randint(0, 4, (1,)).item()
        xs = [torch.zeros(2, 3) for _ in range(5)]
        i = random.randrange(5)
        a = xs.pop(i)
        assert a.shape == (2, 3) and len(xs) == 4
        ys = list(range(10)); ys.remove(k)
        t = torch.tensor(ys)
        assert t.shape == (9,) and t.dtype == torch.int64
        z = t[torch.randint(len(ys), size=(1,))].item()
        del xs[random.randrange(len(xs))]
        assert len(xs) == 3
        """,
    "numbers of NumPy fill tensors": """
        import torch, numpy as np
        v = np.zeros(4)
        for s in v:
            a = torch.full((3,), s)
            assert a.dtype == torch.float32
            a.clone()
        b = torch.full((3,), np.int64(3)); assert b.dtype == torch.int64
        c = torch.full((2,), v[1], dtype=torch.long)
        c.float()
        d = torch.zeros(3).fill_(v[0]); d.sqrt()
        e = torch.full_like(d, v[0]); e.sqrt()
        f = torch.ones(3) * v[0]; f.sqrt()
        g = torch.where(torch.ones(3) > 0, torch.ones(3), v[0]); g.sqrt()
        h = torch.clamp(torch.ones(3), min=v[0]); h.sqrt()
        k = torch.arange(0, v.sum()+3, 1)
        l = torch.tensor(v[0]).sqrt()
        m = torch.linspace(v[0], v[1], 5).sqrt()
        n = torch.ones(3).masked_fill(torch.ones(3) > 0, v[0]).sqrt()
        o = torch.pow(torch.ones(3), v[0]).sqrt()
        q = torch.add(torch.ones(3), v[0]).sqrt()
        r = torch.ones(3).new_full((2,), v[0]).sqrt()
        s = torch.lerp(torch.ones(3), torch.ones(3), v[0]).sqrt()
        u = torch.eq(torch.ones(3), v[0]).float()
        w = torch.nn.functional.pad(torch.ones(3), (1, 1), value=v[0]).sqrt()
        x = torch.scatter(torch.ones(3), 0, torch.tensor([1]), v[0]).sqrt()
        y = torch.normal(v[0], v[1], (3,)).sqrt()
        z = torch.fmod(torch.ones(3), v[0]).sqrt()
        a2 = torch.div(torch.ones(3), v[0]).sqrt()
        b2 = v[0] * torch.ones(3); b2.sqrt()
        """,
    "decorators of classes and operators of a program's own": """
        from typing_extensions import deprecated, override
        import torch
        @deprecated("no")
        class Old(torch.nn.Linear): pass
        @deprecated("no")
        def f(x): return x @ torch.zeros(3, 2)
        class B(Old):
            @override
            def forward(self, x): return super().forward(x)
        assert B(3, 4)(torch.zeros(1, 3)).shape == (1, 4)
        assert f(torch.zeros(1, 3)).shape == (1, 2)
        @torch.library.custom_op("a::b", mutates_args=())
        def op(x: torch.Tensor) -> torch.Tensor: return x + torch.zeros(2)
        @op.register_fake
        def _(x): return torch.empty_like(x)
        @op.register_kernel("cuda")
        def _(x): return x
        op.register_autograd(lambda ctx, g: g, setup_context=lambda *a: None)
        assert op(torch.zeros(2)).shape == (2,)
        """,
    "a window as large as what it moves over; least squares": """
        import numpy as np, torch
        import torch.nn.functional as F
        for n in (torch.randint(5, 9, (3,)).tolist()):
            x = torch.zeros(2, 3, n)
            assert F.avg_pool1d(x, x.shape[-1]).shape == (2, 3, 1)
            assert F.max_pool1d(x, x.size(-1)).permute(0, 2, 1).shape == (2, 1, 3)
        found, errors, rank, values = np.linalg.lstsq(np.ones((7, 3)), np.ones((7, 2)), rcond=None)
        assert found.shape == (3, 2) and values.shape == (3,) and found.dtype == np.float64
        """,
    "generators of random numbers of a program's own": """
        import random, torch
        rng = random.Random(3)
        xs = [torch.zeros(2, 3), torch.ones(2, 3)]
        assert rng.choice(xs).shape == (2, 3)
        k = rng.randrange(5)
        assert torch.zeros(7)[k].shape == ()
        r = rng.random() * torch.zeros(2); rng.shuffle(xs); rng.seed(1)
        assert r.shape == (2,)
        """,
    "classes of typing among the classes of isinstance": """
        from typing import Mapping
        class DictConfig(dict):
            def __init__(self, data=None, **kw):
                super().__init__()
                for k, v in {**(data or {}), **kw}.items():
                    self[k] = self._wrap(v)
            @classmethod
            def _wrap(cls, v):
                if isinstance(v, Mapping) and not isinstance(v, DictConfig):
                    return cls(v)
                if isinstance(v, (list, tuple)):
                    return [cls._wrap(x) for x in v]
                return v
        cfg = DictConfig({"a": {"b": 1, "c": [1, 2]}, "d": 2})
        assert cfg["a"]["b"] == 1
        """,
    "groups by a key that only the run knows": """
        from collections import defaultdict
        import torch
        labels = torch.randint(0, 3, (10,))
        xs = torch.randn(10, 4)
        groups = defaultdict(list)
        for x, y in zip(xs, labels.tolist()):
            groups[y].append(x)
        for k, v in groups.items():
            m = torch.stack(v).mean(0)
            assert m.shape == (4,)
        counts = defaultdict(int)
        for y in labels.tolist():
            counts[y] += 1
        print({k: v / 10 for k, v in counts.items()})
        proto = torch.stack([torch.stack(groups[k]).mean(0) for k in sorted(groups)])
        torch.cdist(xs, proto)
        """,
}


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN)
def test_a_script_that_runs_is_clean(text, tmp_path):
    report = checked(tmp_path, text)
    assert report.checked, report.notices
    assert not report.errors, report.errors
    assert not report.unknown, report.unknown


WRONG = {
    "rows of a group": (
        """
        from collections import defaultdict
        import torch
        groups = defaultdict(list)
        for y in torch.randint(0, 3, (10,)).tolist():
            groups[y].append(torch.zeros(4))
        for rows in groups.values():
            torch.stack(rows) @ torch.zeros(5, 2)
        """,
        "4",
    ),
    "a thread's work is checked": (
        """
        import threading, torch
        def work(n):
            torch.nn.Linear(3, n)(torch.zeros(2, 4))
        thread = threading.Thread(target=work, args=(5,))
        thread.start()
        """,
        "expected 3 features",
    ),
    "each command is checked": (
        """
        import argparse, torch
        def train(args):
            torch.nn.Linear(args.width, 2)(torch.zeros(1, 9))
        parser = argparse.ArgumentParser()
        command = parser.add_subparsers(dest="command").add_parser("train")
        command.add_argument("--width", type=int, default=8)
        command.set_defaults(func=train)
        args = parser.parse_args()
        args.func(args)
        """,
        "expected 8 features",
    ),
    "a field that no argument sets": (
        """
        from dataclasses import dataclass, field
        @dataclass
        class Sizes:
            width: int
            depth: int = field(init=False, default=2)
        Sizes(1, depth=3)
        """,
        "unexpected argument 'depth'",
    ),
    "items that one of which is gone still have their sizes": (
        """
        import random, torch
        rows = [torch.zeros(2, 3) for _ in range(4)]
        rows.pop(random.randrange(4)) @ torch.zeros(4, 2)
        """,
        "3",
    ),
    "least squares of other rows": (
        """
        import numpy as np
        np.linalg.lstsq(np.ones((7, 3)), np.ones(6), rcond=None)
        """,
        "does not fit",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_told_once(name, tmp_path):
    text, message = WRONG[name]
    report = checked(tmp_path, text)
    assert [message in found.message for found in report.errors] == [True], report.errors


def test_names_of_a_lazy_package_are_those_it_says_to_type_checkers(tmp_path):
    package = tmp_path / "shop"
    (package / "parts").mkdir(parents=True)
    lazy = """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            {imports}
        else:
            import sys
            while True:  # it would look for files
                sys.modules[__name__] = __file__
        """
    (package / "__init__.py").write_text(dedent(lazy.format(imports="from .parts import *")))
    inner = lazy.format(imports="from .net import *")
    (package / "parts" / "__init__.py").write_text(dedent(inner))
    (package / "parts" / "net.py").write_text(
        "import torch\n__all__ = ['Net']\nclass Net(torch.nn.Linear):\n    pass\n"
    )
    report = checked(
        tmp_path,
        """
        import torch
        from shop import Net
        import shop.parts
        assert Net(3, 4)(torch.zeros(2, 3)).shape == (2, 4)
        shop.parts.Net(3, 4)(torch.zeros(2, 5))
        """,
    )
    assert not report.unknown
    assert ["expected 3 features" in found.message for found in report.errors] == [True]


def test_an_installed_package_reads_others_at_their_first_use(tmp_path):
    site = tmp_path / "site-packages"
    (site / "mine").mkdir(parents=True)
    (site / "other").mkdir()
    (site / "other" / "__init__.py").write_text(
        "import torch\ndef f(x):\n    return x @ torch.zeros(3, 2)\nclass Base: pass\n"
    )
    (site / "another.py").write_text("while True:\n    pass\n")
    file = site / "mine" / "__init__.py"
    file.write_text(
        dedent(
            """
            import torch
            import another
            from other import f, Base as B
            class C(B):
                def run(self):
                    return f(torch.zeros(1, 4))
            C().run()
            """
        )
    )
    report = check_source(Request(file, SCRIPT, seconds=20))
    assert report.checked, report.notices
    assert len(report.errors) == 1, report.errors


@pytest.mark.parametrize("again", ["raise", "raise error"])
def test_an_error_that_a_handler_raises_again_is_told_where_it_was_met(again, tmp_path):
    report = checked(
        tmp_path,
        f"""
        import torch
        def step(x):
            return x @ torch.zeros(4, 2)
        def run(function):
            try:
                function(torch.zeros(3, 5))
            except BaseException as error:
                {again}
        try:
            run(step)
        except ValueError:
            pass
        """,
    )
    assert [(found.place.line, found.code) for found in report.errors] == [(4, "shape-mismatch")]
