"""Random sequences of calls of a function over arrays, with changes of all that it reads."""

from __future__ import annotations

from .random_sequences import Subject

# Statements; below each, indented, the changes of what it reads.
_LINES = r"""
x = x * FACTOR
    FACTOR = 3 ;; FACTOR = 2.5 ;; FACTOR = True ;; FACTOR = np.float32(2) ;; FACTOR = np.int8(2)
    FACTOR = np.array(3.0) ;; FACTOR = -0.0
x = x + ARRAY
    ARRAY[0] += 1 ;; ARRAY = np.ones(3, 'f') ;; ARRAY = ARRAY.astype('d') ;; ARRAY *= 2
    ARRAY = ARRAY[::-1] ;; ARRAY.fill(4) ;; ARRAY = np.float64(2) ;; ARRAY = [1, 2, 3]
x = x + BIG[:3] + BIG.sum()
    BIG[0] = 3 ;; BIG = np.ones(9000, 'f') ;; BIG[5:] *= 2 ;; BIG = BIG[:6000]
x = x + ARRAY.shape[0] + ARRAY.ndim
    ARRAY = np.ones((3, 1), 'f') ;; ARRAY = np.ones(1)
x = x + float(ARRAY[1])
    ARRAY[1] = 5 ;; ARRAY = ARRAY[::-1] ;; ARRAY = np.arange(6.0)
x = x * 2 if ARRAY[0] > 1 else x - 1
    ARRAY[0] = 7 ;; ARRAY[:] = 0
x = x + sum(ITEMS)
    ITEMS.append(4) ;; ITEMS[0] = 2.5 ;; ITEMS.clear() ;; ITEMS = [7] ;; ITEMS.reverse()
for f in ITEMS: x = x + f * 2
    ITEMS.insert(0, 5) ;; ITEMS[-1:] = [True] ;; ITEMS = (1, 2)
x = x + sum(a.sum() for a in ARRAYS)
    ARRAYS.append(np.ones(2)) ;; ARRAYS[0] = np.zeros(3, 'f') ;; ARRAYS[0][0] = 9 ;; ARRAYS.pop()
x = x + TABLE['a'] * TABLE.get('c', 0)
    TABLE['a'] = 4 ;; TABLE['c'] = 2.0 ;; TABLE.pop('c', None) ;; TABLE['a'] = np.ones(3)
for k_ in TABLE: x = x * 2 + TABLE[k_]
    TABLE['d'] = 1 ;; TABLE = dict(reversed(TABLE.items()))
x = x + (1 if 'c' in TABLE else 2)
    TABLE['c'] = 2.0 ;; TABLE.pop('c', None)
x = helper(x)
    helper = other ;; helper.__defaults__ = (5,) ;; helper.__code__ = other.__code__
    helper = lambda x: x * 3 ;; helper = np.abs
x = inner(x)
    move(2.5) ;; move(3) ;; move(np.arange(3.0)) ;; inner = other
x = part(x)
    part = functools.partial(helper, k=6) ;; part = functools.partial(other) ;; part = part.func
x = x * Config.rate + CONFIG.twice
    Config.rate = 3 ;; Config.base = 4 ;; CONFIG.base = 2 ;; CONFIG.rate = 7 ;; CONFIG = Config()
x = CONFIG.apply(x)
    Config.apply = lambda self, x: x - 2 ;; CONFIG.apply = np.sqrt ;; CONFIG.__class__ = Derived
CONFIG.seen += 1; x = x + CONFIG.seen
    CONFIG.seen = 5 ;; CONFIG.seen = 0.5 ;; CONFIG.seen = np.float32(2)
CONFIG.mean = CONFIG.mean * 0.5 + x.mean(); x = x - CONFIG.mean
    CONFIG.mean = 0.0 ;; CONFIG.mean = np.float64(3) ;; CONFIG.mean = np.float32(1)
CONFIG.held[...] += x.sum().astype('f'); x = x + CONFIG.held
    CONFIG.held[0] = 1 ;; CONFIG.held = np.ones(3, 'f')
CONFIG.last, x = x, x if CONFIG.last is None else x + CONFIG.last.sum()
    CONFIG.last = None ;; CONFIG.last = np.ones(2)
x += 1
x *= k
x[0] = 5
x[..., 1] += x[..., 0]
x[x > 1] = 0
x[:] = x[::-1]
z = x; z[-1] = 7; x = x + z
z = x[1:]; z += 1
z = x.T; z[0] = 3
z = x.reshape(-1); z[0] = 9
z = x.copy(); z[0] = 9; x = x + z
np.add(x, 1, out=x)
np.add.at(x, [0, 0], 1)
np.multiply(x, 2, out=x, where=x > 0)
x.sort(axis=-1)
x = np.sort(x, axis=0)
x = x + y if y is not None and not isinstance(y, (list, tuple, dict, str)) else x
x = x + sum(y) if isinstance(y, (list, tuple)) else x
if isinstance(y, list): y.append(x.sum())
if isinstance(y, list): y[0] = k
if isinstance(y, list) and len(y) > 1: x = x * y.pop()
x = x + y['a'] if isinstance(y, dict) else x
if isinstance(y, dict): y['b'] = x * 1
if isinstance(y, dict): y['a'] = y['a'] + 1
if isinstance(y, np.ndarray): y[...] = y + 1; x = x + y
if isinstance(y, np.ndarray): x = np.where(x is y, x, x + y)
x = x + (1 if y is None else 2)
x = x + len(y) if isinstance(y, str) else x
x = x * k
x = x * 2 if k else x * 3
x = x + k if isinstance(k, int) else x - k
x = x ** k if k == 2 else x
for i in range(int(k) if k == k else 0): x = x + i
x = x[: int(k)] if k >= 1 else x
x = x + x.shape[0]
x = x / x.shape[-1] if x.size else x
for row in x: x = x + row.sum()
x = np.stack([row * 2 for row in x]) if len(x) else x
x = np.concatenate([x, x * 2])[: len(x)]
x = np.array([v.max() for v in x if v.max() > 0] + [0.0]) + k
n = 0
while np.abs(x).max() > 4: x = x * 0.5
x = x + 1 if x.sum() > 0 else x - 1
x = x.astype('d') if x.dtype == np.float32 else x.astype('f')
x = x.astype(np.int64)
x = x // 2
x = x % 3
x = np.where(x > 0, x, -1)
x = np.cumsum(x, axis=-1)
x = x.max(axis=0, keepdims=True) + x
x = x + np.argmax(x)
x = x @ np.ones((x.shape[-1], 3), x.dtype)
x = np.squeeze(x[None])
x = np.atleast_2d(x)
x = x + np.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1))
x = np.asarray(x, dtype=np.float32)
return x[0]
return x.sum()
return x.shape, x.dtype, len(x)
return int(x.sum()), float(x.max()), bool(x.any())
return x, k, [x.sum(), {'n': len(x)}], y
return {'x': x, 'rows': [x[0], None], 'k': k}
return Result(x, x.mean())
return Pair(x, x.mean() > 0)
return x.mean(axis=0), x.mean(), x.std()
return x.tolist()
return None
if x.sum() > 3: return x * 2
if x.sum() > 3: return x, 1
if k == 3: return 'three'
"""

_CALLS = (
    ("make('f', (2, 3), {n})", 6), ("make('f', (4, 3), {n})", 3), ("make('f', (1, 3), {n})", 1),
    ("make('f', (5, 3), {n})", 1), ("make('d', (2, 3), {n})", 2), ("make('i8', (2, 3), {n})", 2),
    ("make('i4', (2, 3), {n})", 1), ("make('u1', (2, 3), {n})", 1), ("make('?', (2, 3), {n})", 1),
    ("make('e', (2, 3), {n})", 1), ("make('f', (3,), {n})", 2), ("make('f', (2, 2, 3), {n})", 1),
    ("make('f', (0, 3), {n})", 1), ("make('f', (3, 3), {n}).T", 1), ("make('f', (3, 3), {n})", 1),
    ("make('f', (4, 3), {n})[::2]", 1), ("make('f', (2, 3), {n})[:, ::-1]", 1),
    ("make('>f4', (2, 3), {n})", 1), ("np.asfortranarray(make('f', (2, 3), {n}))", 1),
    ("np.broadcast_to(make('f', (3,), {n}), (2, 3))", 1), ("make('f', (), {n})", 1),
    ("np.float32({n})", 1), ("np.ma.masked_array(make('f', (2, 3), {n}))", 1),
    ("make('c8', (2, 3), {n})", 1), ("[[1.0, 2, 3], [4, 5, {n}]]", 1),
)  # fmt: skip
_MORE = (
    ("", 8), (", 2", 2), (", 3", 2), (", 2.0", 1), (", True", 1), (", k=0", 1), (", k=-0.0", 1),
    (", k=2**70", 1), (", k=float('nan')", 1), (", k=float('inf')", 1), (", k=np.int64(2)", 1),
    (", 1, make('f', (3,), {n})", 2), (", y=[1, 2.0]", 2), (", y=(make('f', (3,), {n}), 1)", 1),
    (", y=None", 1), (", k=np.float32(1.5)", 1), (", y='text'", 1), (", k=5", 1),
    (", y={{'a': make('f', (3,), {n})}}", 2), (", y=[make('f', (3,), {n}), 1]", 1),
    (", y=np.ones(3)", 1), (", y=np.float64(2)", 1), (", k=np.array(2)", 1),
    (", y=ARRAY", 1), (", y=[]", 1), (", k=1e30", 1),
)  # fmt: skip

_TOP = """import dataclasses
import functools
from typing import NamedTuple

import numpy as np

FACTOR = 2
ARRAY = np.arange(3, dtype="f")
BIG = np.arange(9000, dtype="f") / 9000
ITEMS = [1, 2, 3]
ARRAYS = [np.ones(3, "f"), np.arange(2.0)]
TABLE = {"a": 1.0, "b": 2.0}


def make(dtype, shape, seed):
    return np.asarray((np.random.default_rng(seed).standard_normal(shape) * 3)).astype(dtype)


@dataclasses.dataclass
class Result:
    x: object
    mean: object


class Pair(NamedTuple):
    x: object
    flag: object


class Config:
    base = 1
    rate = 0.5
    seen = 0

    def __init__(self):
        self.mean, self.last, self.held = np.float64(0), None, np.zeros(3, "f")

    @property
    def twice(self):
        return self.base * 2

    def apply(self, x):
        return x * self.rate


class Derived(Config):
    rate = 4


CONFIG = Config()


def helper(x, k=2):
    return x * k


def other(x, k=1):
    return x - k


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


def net(x, k=1, y=None):
"""
_END = "    return x\n"

SUBJECT = Subject(_TOP, _LINES, _END, _CALLS, _MORE, indent=4)
