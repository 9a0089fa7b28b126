"""Random sequences of calls of a link, with changes of everything that it may read."""

from __future__ import annotations

from .random_sequences import Subject

# Statements; below each, indented, the changes of what it reads.
_LINES = r"""
x = self.lin(x)
    net.lin.W.array[...] *= 2 ;; net.lin.W.array = np.eye(3, dtype='f') ;; net.lin.b.data[1] = 4
    net.lin.b = None ;; net.lin = L.Linear(3, 3, nobias=True, initialW=0.5)
    net.lin.W.array = np.ones((3, 3)) ;; net.lin.W = hagane.Parameter(np.ones((3, 3), 'f'))
    net.lin.copyparams(L.Linear(3, 3, initialW=0.25)) ;; net.lin.disable_update()
    net.lin.W.array -= 0.1 ;; net.lin.W.array.fill(0) ;; net.lin.forward = lambda x: x * 2
    net.lin.add_hook(Twice()) ;; net.lin.delete_hook('Twice')
x = self.seq(x)
    net.seq.append(F.tanh) ;; net.seq.insert(0, F.relu) ;; del net.seq[0]
    net.seq[0].W.array += 1 ;; net.seq = hagane.Sequential(F.sigmoid)
for link in self.many: x = link(x)
    net.many.append(L.Linear(3, 3, initialW=0.5)) ;; net.many[0].b.array[:] = 3
    net.many.add_link(Sub()) ;; net.many = hagane.ChainList()
for link in self.children(): x = x + 1
    net.add_link('more' + str(len(list(net.children()))), L.Linear(3, 3, initialW=1))
x = x + sum(F.sum(p) for p in self.params())
    net.lin.W.array[0] = 2 ;; net.lin.b.array[:] = 1
for name, p in sorted(self.lin.namedparams()): x = x * F.sum(p) + len(name)
    net.lin.W.array[0] = 2 ;; net.lin.b = None
x = self.norm(x)
    net.norm.gamma.array[0] = 5 ;; net.norm.avg_mean[...] = 0.5 ;; net.norm.avg_var *= 2
    net.norm.eps = 0.1 ;; net.norm.decay = 0.5 ;; net.norm.avg_mean = np.full(3, 2, 'f')
x = self.layer(x)
    net.layer.gamma.array *= 2 ;; net.layer.beta.array[1] = 1 ;; net.layer.eps = 0.5
x = self.cell(x)
    net.cell.reset_state() ;; net.cell.h = hagane.Variable(np.ones((2, 3), 'f'))
    net.cell.lateral.W.array *= 0.5
x = self.sub(x)
    net.sub.k = 3 ;; Sub.k = 9 ;; Sub.forward = lambda self, x: x - 2 ;; net.sub = Sub()
    Sub.scaled = lambda self, x: x * 4 ;; net.sub.inner.k = 2
x = self.embed(np.array([INDEX, 1])) * F.sum(x)
    INDEX = 2 ;; INDEX = 0 ;; net.embed.W.array[1] = 7 ;; net.embed.ignore_label = 1
x = F.prelu(x, self.slope)
    net.slope.array[...] = 0.5 ;; net.slope.array = np.float32(0.75)
x = self.prelu(x)
    net.prelu.W.array[...] = 0.5 ;; net.prelu = L.PReLU(init=0.75)
x = x * self.kept
    net.kept[...] = 3 ;; net.kept = np.ones(3, 'f') ;; net.kept = 2.0
self.kept = self.kept * 0.5; x = x + self.kept
    net.kept[...] = 3 ;; net.kept = np.ones(3, 'f')
self.kept[...] = self.kept + 1; x = x + self.kept
    net.kept[...] = 3 ;; net.kept = np.ones(3, 'f')
self.count += 1; x = x + self.count
    net.count = 5 ;; net.count = 0.5
self.last = x if self.last is None else self.last + F.sum(x); x = x + F.sum(self.last)
    net.last = None ;; net.last = hagane.Variable(np.ones(3, 'f'))
self.last = F.sum(x) * 2
    net.last = None
x = x + 1 if hagane.config.train else x * 2
    hagane.global_config.train = True ;; hagane.global_config.train = False
x = F.dropout(x, 0.0) + 1
    hagane.global_config.train = True
x = x + 1 if hagane.config.enable_backprop else x * 2
    hagane.global_config.enable_backprop = False ;; hagane.global_config.enable_backprop = True
with hagane.no_backprop_mode(): x = F.tanh(x)
with hagane.using_config('train', False): x = self.norm(x)
    net.norm.avg_mean[...] = 0.5
x = F.relu(x) if self.mode == 'relu' else F.tanh(x)
    net.mode = 'tanh' ;; net.mode = 'relu'
x = x * FACTOR
    FACTOR = 3 ;; FACTOR = 2.5 ;; FACTOR = np.float32(0.5) ;; FACTOR = np.float64(0.5)
x = x + WEIGHT
    WEIGHT[0] = 5 ;; WEIGHT = np.ones(3, 'f') ;; WEIGHT = np.arange(3.0)
x = x + PARAMETER
    PARAMETER.array[0] = 5 ;; PARAMETER.array = np.ones(3, 'f')
    PARAMETER = hagane.Variable(np.arange(3, dtype='f'))
x = OUTSIDE(x)
    OUTSIDE.W.array *= 0.5 ;; OUTSIDE = L.Linear(3, 3, initialW=0.5) ;; OUTSIDE = F.relu
x = x + 1 if x.array.sum() > 0 else x - 1
x = x + 1 if float(F.max(x).array) > 1 else x * 0.5
while float(F.max(F.absolute(x)).array) > 4: x = x * 0.5
for i in range(len(x)): x = x + i
for row in x: x = x + F.sum(row) * 0.1
x = F.stack([row * 2 for row in F.separate(x, 0)])
x = F.concat([x, x * 2], axis=0)[:len(x)]
x = x.reshape(x.shape) if x.ndim == 2 else F.expand_dims(x, 0)
x = x * k
x = x * 2 if k else x * 3
x = x + k if isinstance(k, int) else x - k
x = x + y if y is not None and not isinstance(y, (list, tuple, dict)) else x
x = x + sum(y) if isinstance(y, (list, tuple)) else x
if isinstance(y, list): y.append(F.sum(x))
x = x + y['a'] if isinstance(y, dict) else x
if isinstance(y, dict): y['b'] = x * 1
x = hagane.Variable(x.array * 2) if isinstance(x, hagane.Variable) else x * 2
x = hagane.as_variable(x)
x = x.array if isinstance(x, hagane.Variable) else x
x = F.cast(x, 'float64')
x = F.where(x.array > 0, x, x * 0.5) if hasattr(x, 'array') else np.where(x > 0, x, x * 0.5)
x = x.astype('f') if isinstance(x, np.ndarray) else x
return x, k, [F.sum(x), {'n': len(x)}]
return {'x': x, 'rows': [x[0], None], 'k': k}
return Result(x, F.sum(x))
return float(F.sum(x).array)
"""

_CALLS = (
    ("make('f', (2, 3), {n})", 6), ("make('f', (4, 3), {n})", 3), ("make('f', (1, 3), {n})", 1),
    ("make('f', (5, 3), {n})", 1), ("make('d', (2, 3), {n})", 1), ("make('i', (2, 3), {n})", 1),
    ("make('f', (3, 3), {n}).T", 1), ("make('f', (4, 3), {n})[::2]", 1),
    ("make('f', (0, 3), {n})", 1), ("hagane.Variable(make('f', (2, 3), {n}))", 3),
    ("hagane.Variable(make('f', (4, 3), {n}))", 2),
    ("hagane.Variable(make('f', (2, 3), {n}), requires_grad=False)", 1),
    ("F.tanh(hagane.Variable(make('f', (2, 3), {n})))", 1), ("make('e', (2, 3), {n})", 1),
    ("net.lin.W", 1), ("make('f', (2, 2, 3), {n})", 1),
)  # fmt: skip
_MORE = (
    ("", 8), (", 2", 2), (", 3", 1), (", 2.0", 1), (", True", 1), (", k=0", 1), (", k=-0.0", 1),
    (", 1, make('f', (3,), {n})", 1), (", y=[1, 2.0]", 1), (", y=(make('f', (3,), {n}), 1)", 1),
    (", y=None", 1), (", k=np.float32(1.5)", 1), (", k=hagane.Variable(np.ones(3, 'f'))", 1),
    (", y=net.lin.b", 1), (", y={{'a': make('f', (3,), {n})}}", 1), (", k=5", 1),
    (", y=[hagane.Variable(make('f', (3,), {n})), make('f', (3,), {n})]", 1),
)  # fmt: skip


_TOP = """import dataclasses

import numpy as np
import hagane
import hagane.functions as F
import hagane.links as L

FACTOR = 2
INDEX = 1
WEIGHT = np.arange(3, dtype="f")
PARAMETER = hagane.Parameter(np.arange(3, dtype="f"))


def make(dtype, shape, seed):
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


def linear(seed):
    return L.Linear(3, 3, initialW=make("f", (3, 3), seed), initial_bias=make("f", (3,), seed))


OUTSIDE = linear(9)


@dataclasses.dataclass
class Result:
    x: object
    mean: object


class Twice(hagane.LinkHook):
    name = "Twice"

    def forward_postprocess(self, args):
        args.out.array[...] *= 2


class Inner:
    k = 1


class Sub(hagane.Chain):
    def __init__(self):
        super().__init__()
        self.k = 2
        self.inner = Inner()
        with self.init_scope():
            self.lin = linear(1)

    def scaled(self, x):
        return x * self.k

    def forward(self, x):
        return self.scaled(self.lin(x)) + self.inner.k


class Net(hagane.Chain):
    def __init__(self):
        super().__init__()
        self.mode, self.count, self.last = "relu", 0, None
        with self.init_scope():
            self.lin, self.sub = linear(2), Sub()
            self.seq = hagane.Sequential(linear(3), F.relu)
            self.many = hagane.ChainList(linear(4), Sub())
            self.norm, self.layer = L.BatchNormalization(3), L.LayerNormalization(3)
            self.cell = L.LSTM(3, 3, lateral_init=make("f", (3, 3), 5),
                               upward_init=make("f", (3, 3), 6))
            self.embed = L.EmbedID(4, 3, initialW=make("f", (4, 3), 7))
            self.slope = hagane.Parameter(np.array(0.25, "f"))
            self.prelu = L.PReLU()
        self.add_persistent("kept", np.arange(3, dtype="f"))

    def forward(self, x, k=1, y=None):
"""
_END = """        return x


net = Net()
"""

SUBJECT = Subject(_TOP, _LINES, _END, _CALLS, _MORE)
