"""Random sequences of calls of a module of PyTorch, with changes of everything that it may read."""

from __future__ import annotations

from .random_sequences import Subject

# Statements; below each, indented, the changes of what it reads.
_FEATURES = r"""
x = x * FACTOR
    FACTOR = 3 ;; FACTOR = 3.0 ;; FACTOR = True ;; FACTOR = 2 ;; FACTOR = torch.tensor(2.0)
    FACTOR = np.float32(2)
x = x + sum(ITEMS)
    ITEMS.append(4) ;; ITEMS[0] = 2.5 ;; ITEMS.clear() ;; ITEMS = [7] ;; ITEMS.reverse()
    ITEMS.pop() if ITEMS else 0
for i, f in enumerate(ITEMS): x = x + f * i
    ITEMS.reverse() ;; ITEMS.insert(0, 5) ;; ITEMS[-1:] = [True]
x = x + TABLE['a'] * TABLE.get('c', 0)
    TABLE['a'] = 4 ;; TABLE['c'] = 2.0 ;; TABLE.pop('c', None) ;; TABLE = {'a': 0}
for k in TABLE: x = x * 2 + TABLE[k]
    TABLE['d'] = 1 ;; TABLE = dict(reversed(TABLE.items())) ;; TABLE.setdefault('e', 5)
    TABLE['b'] = TABLE.pop('b', 1)
x = x + NEST['p'][0]['q']
    NEST['p'][0]['q'] = 3 ;; NEST['p'].insert(0, {'q': 9}) ;; NEST['p'] = ({'q': 1.5},)
x = x + len(NEST['p'])
    NEST['p'] = [*NEST['p'], {'q': 2}] ;; NEST['p'] = NEST['p'][:1]
x = x + torch.from_numpy(ARRAY).sum()
    ARRAY[0] += 1 ;; ARRAY = np.ones(4, np.float32) ;; ARRAY = ARRAY.astype(np.float64)
    ARRAY *= 2
x = x + float(ARRAY[1])
    ARRAY[1] = 5 ;; ARRAY = ARRAY[::-1] ;; ARRAY = np.arange(6.0)
x = x * WEIGHT.sum()
    WEIGHT.add_(1) ;; WEIGHT = torch.ones(2) ;; WEIGHT = WEIGHT.double()
    WEIGHT.data = torch.full((5,), 0.5) ;; WEIGHT[0] = 4
x = x * WEIGHT.shape[0]
    WEIGHT = torch.ones(4) ;; WEIGHT.data = torch.ones(6)
x = x * 2 if WEIGHT[0] > 1 else x - 1
    WEIGHT[0] = 7 ;; WEIGHT.zero_() ;; WEIGHT = torch.full((3,), 3.0)
x = x + int(INDEX[1])
    INDEX[1] = 5 ;; INDEX = torch.tensor([3, 2]) ;; INDEX.add_(1)
x = x + INDEX.tolist()[0]
    INDEX[0] = 5 ;; INDEX = torch.tensor([3, 2]) ;; INDEX.mul_(2)
x = helper(x)
    helper = other ;; helper.__defaults__ = (5,) ;; helper.__code__ = other.__code__
    helper = lambda x: x * 3
x = helper(x, 3)
    helper.__defaults__ = (9,) ;; helper = other
x = keyed(x)
    keyed.__kwdefaults__ = {'k': 7} ;; keyed.__kwdefaults__['k'] = 4 ;; keyed = other
x = listed(x)
    listed.__defaults__[0].append(2) ;; listed.__defaults__ = ([4],)
x = inner(x)
    move(2.5) ;; move(3) ;; move(torch.tensor(2.0)) ;; inner = other
x = part(x)
    part = functools.partial(helper, k=6) ;; part = functools.partial(other) ;; part = part.func
x = x * Config.rate
    Config.rate = 3 ;; Config.rate = 0.25 ;; Config.base = 4 ;; Derived.rate = 2
x = x * Derived.rate
    Config.rate = 3 ;; Derived.rate = 2 ;; Derived.rate = 0.1
x = x * CONFIG.rate
    CONFIG.rate = 5 ;; Config.rate = 7 ;; CONFIG = Derived() ;; CONFIG.__class__ = Derived
    CONFIG.__dict__.clear()
x = x + CONFIG.twice
    Config.base = 5 ;; CONFIG.base = 2 ;; Config.twice = property(lambda self: 9)
    Config.twice = 1
x = x + (1 if hasattr(CONFIG, 'extra') else 2)
    CONFIG.extra = 1 ;; CONFIG.__dict__.pop('extra', None) ;; Config.extra = 0
x = x + getattr(self, 'extra', 1)
    net.extra = 4 ;; net.__dict__.pop('extra', None) ;; Net.extra = 2
x = x + OPTIONS.alpha + sum(OPTIONS.layers)
    OPTIONS.alpha = 3 ;; OPTIONS.layers.append(2) ;; OPTIONS = Options(1.5, [])
    OPTIONS.layers = [1]
x = x + (OPTIONS == Options(1.0, [1, 2]))
    OPTIONS.alpha = 1.0 ;; OPTIONS.layers[:] = [1, 2] ;; OPTIONS.alpha = 2
x = x * 3 if Mode.current is Mode.fast else x
    Mode.current = Mode.fast ;; Mode.current = Mode.slow
x = x * self.scale
    net.scale = 3.0 ;; net.scale = 2 ;; net.scale = torch.tensor(2.5)
    net.scale = np.float64(0.5) ;; net.scale = -0.0 ;; net.scale = 0.0 ;; net.scale = float('nan')
x = x + x.new_zeros(()).copysign(torch.tensor(self.scale))
    net.scale = -0.0 ;; net.scale = 0.0 ;; net.scale = -1.0
x = torch.relu(x) if self.mode == 'relu' else torch.tanh(x)
    net.mode = 'tanh' ;; net.mode = 'relu'
x = x + 1 if self.flag else x - 1
    net.flag = False ;; net.flag = None ;; net.flag = [1] ;; net.flag = '' ;; net.flag = 2
x = self.lin(x)
    net.lin.weight.data.mul_(2) ;; net.lin.bias = None
    torch.manual_seed(5); net.lin = nn.Linear(3, 3)
    net.lin.weight.data = torch.ones(3, 3) ;; net.lin.weight = nn.Parameter(torch.eye(3))
    net.lin.double() ;; net.lin.float() ;; net.lin.forward = lambda x: x * 2
    net.lin.weight[0].data.fill_(3) ;; net.lin.bias.data[1] = 4 ;; net.lin = nn.Identity()
x = self.act(x)
    net.act = nn.ReLU() ;; net.act = nn.LeakyReLU(0.2) ;; net.act = nn.Tanh()
    net.act.negative_slope = 0.5 ;; net.act.inplace = True
x = self.sub(x)
    net.sub.k = 3 ;; Sub.forward = lambda self, x: x - 2 ;; Sub.scaled = lambda self, x: x * 4
    net.sub.scaled = lambda x: x * 5 ;; net.sub = Sub() ;; net.sub.inner.k = 2 ;; Sub.k = 9
    del net.sub.k
for m in self.many: x = m(x)
    net.many.append(nn.ReLU()) ;; net.many[0] = nn.Tanh() ;; del net.many[0]
    net.many.insert(0, Sub()) ;; net.many = nn.ModuleList()
x = self.seq(x)
    net.seq[0] = nn.Tanh() ;; net.seq.append(nn.ReLU()) ;; net.seq = nn.Sequential(Sub())
    net.seq.add_module('more', Sub())
x = x + sum(p.sum() for p in self.params)
    net.params.append(torch.ones(2)) ;; net.params[0] = nn.Parameter(torch.ones(3))
    net.params[0].data.add_(1)
x = x * self.buffer
    net.buffer.add_(1) ;; net.buffer = torch.full((3,), 2.0) ;; net.buffer = torch.ones(1)
    net.buffer = None ;; net.buffer = torch.ones(3, dtype=torch.float64)
    net.register_buffer('buffer', torch.zeros(3))
x = x if self.maybe is None else x + self.maybe
    net.maybe = torch.ones(3) ;; net.maybe = None ;; net.maybe = nn.Parameter(torch.ones(3))
x = torch.nn.functional.dropout(x, 0.0, self.training) + self.training
    net.train() ;; net.eval() ;; net.training = True ;; net.lin.train()
x = self.norm(x.reshape(-1, 3)).reshape(x.shape)
    net.norm.train() ;; net.norm.eval() ;; net.norm.running_mean.add_(0.5) ;; net.norm.eps = 0.1
    net.norm.momentum = 0.5 ;; net.norm.reset_running_stats()
    net.norm.track_running_stats = False
self.count += 1; x = x + self.count
    net.count = 5 ;; net.count = 0.5 ;; net.count = torch.tensor(2)
self.state = self.state * 0.5 + x.sum(); x = x + self.state
    net.state = torch.tensor(3.0) ;; net.state.add_(1) ;; net.state = 0.0
    net.state = torch.tensor(1.0, dtype=torch.float64)
self.running.mul_(0.5).add_(x.mean()); x = x - self.running
    net.running.zero_() ;; net.running = torch.tensor(1.0)
x = x - 1 if torch.is_grad_enabled() else x
    torch.set_grad_enabled(False) ;; torch.set_grad_enabled(True)
x = x + torch.ones(3)
    torch.set_default_dtype(torch.float64) ;; torch.set_default_dtype(torch.float32)
x.mul_(2)
if isinstance(y, list): y.append(x.sum())
if isinstance(y, list): y[0] = k
x = x + (0 if self.last is None else self.last.sum()); self.last = x * 1
    net.last = None ;; net.last = torch.ones(2) ;; net.last = torch.ones(4, 3)
SCALES.mul_(2); x = x * SCALES
    SCALES.zero_() ;; SCALES = torch.ones(3) ;; SCALES.data.add_(1)
x = x * k
x = x * 2 if k else x * 3
x = x + k if isinstance(k, int) else x - k
x = x.repeat(1, 1) if x.dim() == 2 else x + 1
x = x + x.shape[0]
x = x / x.shape[-1] if x.numel() else x
x = x + y if y is not None else x
x = x + sum(y) if isinstance(y, (list, tuple)) else x
x = x.flip(0) if x.is_contiguous() else x
x = x + (1 if x.requires_grad else 2)
x = x.double() if x.dtype == torch.float32 else x.float()
x = x.to(self.lin.weight.dtype)
    net.lin.double() ;; net.lin.float()
x = x + 1 if x.sum() > 0 else x - 1
x = torch.where(x > 0, x, self.lin.weight.sum())
    net.lin.weight.data.neg_() ;; net.requires_grad_(False)
x = REGISTRY[self.mode](x)
    REGISTRY['relu'] = torch.sigmoid ;; REGISTRY = {**REGISTRY, 'relu': helper}
    net.mode = 'tanh'
x = x + len(NAMES) + ('b' in NAMES)
    NAMES.add('b') ;; NAMES.discard('a') ;; NAMES = {'b'}
x = x + PAIR[0] * PAIR[1].sum()
    PAIR = (3, torch.ones(3)) ;; PAIR[1].add_(1) ;; PAIR = (True, PAIR[1])
x = x + math.floor(LIMIT)
    LIMIT = 3.5 ;; LIMIT = 2 ;; math = Maths
"""

_CALLS = (
    ("make('float32', (2, 3), {n})", 6), ("make('float32', (4, 3), {n})", 3),
    ("make('float32', (1, 3), {n})", 1), ("make('float32', (0, 3), {n})", 1),
    ("make('float32', (5, 3), {n})", 1), ("make('float64', (2, 3), {n})", 1),
    ("make('int64', (2, 3), {n})", 1), ("make('bool', (2, 3), {n})", 1),
    ("make('float32', (3,), {n})", 1), ("make('float32', (2, 2, 3), {n})", 1),
    ("make('float32', (3, 3), {n}).t()", 1), ("make('float32', (3, 3), {n})", 1),
    ("make('float32', (2, 3), {n}).requires_grad_()", 1), ("make('float16', (2, 3), {n})", 1),
    ("make('float32', (4, 3), {n})[::2]", 1),
)  # fmt: skip
_MORE = (
    ("", 8), (", 2", 2), (", 3", 1), (", 2.0", 1), (", True", 1), (", k=0", 1), (", k=-0.0", 1),
    (", 1, make('float32', (3,), {n})", 1), (", y=[1, 2.0]", 1),
    (", y=(make('float32', (3,), {n}), 1)", 1), (", y=None", 1), (", k=torch.tensor(2)", 1),
    (", k=np.float32(1.5)", 1), (", y=np.ones(3)", 1), (", k=5", 1), (", k=1e30", 1),
)  # fmt: skip


_TOP = """import dataclasses
import enum
import functools
import math

import numpy as np
import torch
from torch import nn

FACTOR = 2
ITEMS = [1, 2, 3]
TABLE = {"a": 1.0, "b": 2.0}
NEST = {"p": [{"q": 1}]}
ARRAY = np.ones(3, np.float32)
WEIGHT = torch.arange(3.0)
SCALES = torch.ones(3)
INDEX = torch.tensor([1, 2])
REGISTRY = {"relu": torch.relu, "tanh": torch.tanh}
NAMES = {"a"}
PAIR = (2, torch.arange(3.0))
LIMIT = 1.5


class Maths:
    floor = staticmethod(lambda value: 7)


class Mode(enum.Enum):
    fast = 1
    slow = 2


Mode.current = Mode.slow


class Config:
    base = 1
    rate = 0.5

    @property
    def twice(self):
        return self.base * 2


class Derived(Config):
    pass


CONFIG = Config()


@dataclasses.dataclass
class Options:
    alpha: float
    layers: list


OPTIONS = Options(0.5, [1, 2])


def helper(x, k=2):
    return x * k


def other(x, k=1):
    return x - k


def keyed(x, *, k=2):
    return x + k


def listed(x, items=[1]):
    return x * sum(items)


def outer():
    shift = 1.0

    def inner(x):
        return x + shift

    def move(value):
        nonlocal shift
        shift = value

    return inner, move


inner, move = outer()
part = functools.partial(helper, k=4)


class Inner:
    k = 1


class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 2
        self.inner = Inner()

    def scaled(self, x):
        return x * self.k

    def forward(self, x):
        return self.scaled(x) + self.inner.k


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.mode, self.flag, self.count = 2.0, "relu", True, 0
        self.lin, self.act, self.sub = nn.Linear(3, 3), nn.LeakyReLU(0.1), Sub()
        self.many = nn.ModuleList([nn.ReLU(), Sub()])
        self.seq = nn.Sequential(nn.LeakyReLU(), Sub())
        self.params = nn.ParameterList([torch.ones(2)])
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("buffer", torch.ones(3))
        self.register_buffer("maybe", None)
        self.register_buffer("running", torch.tensor(0.0))
        self.state = torch.tensor(0.0)
        self.last = None

    def forward(self, x, k=1, y=None):
"""
_END = """        return x


def make(dtype, shape, seed):
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    return (drawn * 3).to(getattr(torch, dtype))


torch.manual_seed(0)
net = Net().eval()
"""


SUBJECT = Subject(_TOP, _FEATURES, _END, _CALLS, _MORE)
