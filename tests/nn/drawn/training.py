"""The part of a program that trains its model: optimizer, hooks, and steps of many kinds."""

from __future__ import annotations

import random

OPTIMIZERS = """SGD(0.1) | MomentumSGD(0.05, 0.8) | NesterovAG(0.05) | CorrectedMomentumSGD(0.05)
| MSVAG(0.05) | AdaGrad(0.05) | AdaDelta(0.9) | RMSprop(0.01) | RMSprop(0.01, eps_inside_sqrt=True)
| RMSpropGraves(0.01) | SMORMS3(0.01) | Adam(0.01) | Adam(0.01, amsgrad=True) | AdamW(0.01)
| Adam(0.01, weight_decay_rate=0.02, eta=0.5) | Adam(0.01, adabound=True) | AMSGrad() | AdaBound()
| AMSBound() | MomentumSGD()"""

HOOKS = """WeightDecay(0.01) | Lasso(0.01) | GradientClipping(0.5) | GradientNoise(0.1)
| GradientHardClipping(-0.1, 0.1) | GradientLARS()"""

# Each a step; ``loss`` is what it computed.
STEPS = (
    """
optimizer.update(model, x, ids)
loss = model(x, ids)
""",
    """
loss = model(x, ids)
model.cleargrads()
loss.backward()
optimizer.update()
""",
    """
model.zerograds()
loss = model(x, ids)
loss.backward()
optimizer.update()
""",
    """
model.cleargrads()
loss = model(x, ids)
loss.backward()
other = model(x * 0.5, ids)
other.backward(loss_scale=2.0)
notes_of('grad', (p.grad for p in params(model)))
optimizer.update()
""",
    """
v = chainer.Variable(x)
loss = model(v, ids)
(g,) = chainer.grad([loss], [v], enable_double_backprop=True)
if g is not None:
    note('input', g)
    loss = loss + 0.1 * F.sum(g * g)
model.cleargrads()
loss.backward()
note('input grad', v.grad)
optimizer.update()
""",
    """
loss = model(x, ids)
model.cleargrads()
loss.backward(enable_double_backprop=True)
squares = [F.sum(p.grad_var ** 2) for p in params(model) if p.grad_var is not None]
total = sum(squares)
model.cleargrads()
if isinstance(total, chainer.Variable):
    total.backward()
    note('norm', total)
    notes_of('second', (p.grad for p in params(model)))
optimizer.update()
""",
    """
loss = model(x, ids)
model.cleargrads()
loss.backward(retain_grad=True)
notes_of('inner', (v.grad for v in model.values))
optimizer.update()
""",
    """
with chainer.using_config('train', False), chainer.no_backprop_mode():
    loss = model(x, ids)
note('creator', float(loss.creator is None))
""",
    """
loss = model(x, ids)
given = [p for p in params(model) if p.array is not None]
grads = chainer.grad([loss], given, grad_outputs=[chainer.Variable(np.array(2, DTYPE))])
notes_of('grads', grads)
model.cleargrads()
for p, g in zip(given, grads):
    if g is not None:
        p.grad = g.array
optimizer.update()
""",
    """
loss = model(x, ids)
if model.values:
    y = model.values[-1]
    model.cleargrads()
    y.grad = drawn(7, y.shape, -1, 1)
    y.backward()
    notes_of('grad', (p.grad for p in params(model)))
    optimizer.update()
""",
    """
loss = model(x, ids)
model.cleargrads()
loss.backward()
loss.unchain_backward()
note('creator', float(loss.creator is None))
notes_of('grad', (p.grad for p in params(model)))
""",
    """
model.cut = True
loss = model(x, ids)
model.cleargrads()
loss.backward()
notes_of('grad', (p.grad for p in params(model)))
model.cut = False
""",
    """
before = model.copy('copy')
loss = before(x, ids)
before.cleargrads()
loss.backward()
model.cleargrads()
model.addgrads(before)
notes_of('grad', (p.grad for p in params(model)))
optimizer.update()
before.copyparams(model)
notes_of('param', (p.array for p in params(before)))
""",
    """
other = copy.deepcopy(model)
loss = other(x, ids) + model(x * 2, ids)
model.cleargrads()
other.cleargrads()
loss.backward()
model.addgrads(other)
optimizer.update()
""",
    """
for i, p in enumerate(params(model)):
    if i % 2:
        p.update_rule.enabled = False
optimizer.update(model, x, ids)
for p in params(model):
    p.update_rule.enabled = True
loss = model(x, ids)
""",
    """
first = list(model.children())[0]
first.disable_update()
optimizer.update(model, x, ids)
first.enable_update()
loss = model(x, ids)
""",
    """
for p in params(model):
    p.array[...] *= 0.9
x = x.copy()
x[:1] += 0.1
optimizer.update(model, x, ids)
loss = model(x, ids)
""",
    """
optimizer.new_epoch()
name = next((name for name in ('alpha', 'lr', 'eps') if hasattr(optimizer, name)), 'eps')
setattr(optimizer, name, getattr(optimizer, name) * 0.5)
optimizer.update(model, x, ids)
loss = model(x, ids)
""",
    """
params(model)[0].update_rule.add_hook(chainer.optimizer_hooks.WeightDecay(0.1))
optimizer.update(model, x, ids)
loss = model(x, ids)
""",
    """
reporter = chainer.Reporter()
reporter.add_observer('main', model)
seen = {}
with reporter.scope(seen):
    optimizer.update(model, x, ids)
    loss = model(x, ids)
notes_of(' '.join(sorted(seen)), seen.values())
summary = chainer.DictSummary()
summary.add(seen)
notes_of('summary', (v for _, v in sorted(summary.compute_mean().items())))
""",
    """
with chainer.force_backprop_mode():
    loss = model(x, ids)
with chainer.no_backprop_mode():
    with chainer.force_backprop_mode():
        loss = loss + model(x, ids)
model.cleargrads()
loss.backward()
optimizer.update()
""",
    """
v = chainer.Variable(x)
loss = model(v, ids)
inner = [one for one in model.values if one.requires_grad][:2]
found = chainer.grad([loss], [v, *inner], retain_grad=True, set_grad=True)
notes_of('set', (one.grad for one in [v, *inner]))
notes_of('found', found)
""",
    """
v = chainer.Variable(x)
loss = model(v, ids)
inner = [one for one in model.values if one.requires_grad][:1]
given = [chainer.Variable(drawn(3, one.shape, -1, 1)) for one in [v, *inner]]
notes_of('given', chainer.grad([loss], [v, *inner], grad_inputs=given))
""",
    """
v = chainer.Variable(x)
loss = model(v, ids)
(g,) = chainer.grad([loss], [v], enable_double_backprop=True)
if g is not None:
    (h,) = chainer.grad([F.sum(g * drawn(4, g.shape, -1, 1))], [v], enable_double_backprop=True)
    note('second', h)
    if h is not None:
        model.cleargrads()
        F.sum(h * h).backward()
        notes_of('third', (p.grad for p in params(model)))
""",
    """
hook = chainer.link_hooks.TimerHook()
with hook:
    loss = model(x, ids)
note('links', float(len(hook.call_history)))
with chainer.function_hooks.TimerHook():
    model.cleargrads()
    loss.backward()
optimizer.update()
""",
    """
v = chainer.Variable(x, requires_grad=False)
w = chainer.Variable(x.copy())
loss = model(v, ids) + model(w, ids)
model.cleargrads()
loss.backward()
note('none', v.grad)
note('input grad', w.grad)
w.copydata(v)
w.addgrad(w)
note('input grad', w.grad)
v.zerograd()
note('zeros', v.grad)
optimizer.update()
""",
    """
p = params(model)[-1]
before = p.array.copy()
p.update_rule.update(p)
p.grad = None if p.array is None else np.ones_like(p.array)
p.update()
note('alone', p.array - before)
p.array = before
loss = model(x, ids)
""",
    """
total = chainer.Variable(np.zeros((), DTYPE))
for k in range(3):
    loss = model(x * (k + 1), ids)
    total += loss
    if k == 1:
        total.unchain()
model.cleargrads()
total.backward()
notes_of('grad', (p.grad for p in params(model)))
optimizer.update()
loss = total
""",
    """
rate = F.sigmoid(params(model)[-1])
y = model(x, ids)
loss = y * F.sum(rate)
model.cleargrads()
loss.backward(retain_grad=True)
note('rate', rate.grad)
note('y', y.grad)
del y, rate
optimizer.update()
""",
    """
optimizer.set_loss_scale(8.0)
optimizer.update(model, x, ids)
optimizer.set_loss_scale(1.0)
loss = model(x, ids)
""",
    """
for name, p in sorted(model.namedparams()):
    note('%s %s' % (name, p.name), p.array)
note('count', np.array(model.count_params()))
notes_of('links', (np.array(len(list(one.params()))) for _, one in sorted(model.namedlinks())))
loss = model(x, ids)
""",
    """
try:
    optimizer.remove_hook('WeightDecay')
except KeyError:
    note('no such hook', 1)
optimizer.update(model, x, ids)
loss = model(x, ids)
""",
    """
loss = model(x, ids)
model.cleargrads()
loss.backward()
for p in params(model):
    if p.grad is not None:
        p.grad[...] = np.clip(p.grad, -0.05, 0.05)
        p.grad *= 2
optimizer.update()
""",
    """
class Pairs(chainer.Chain):
    def __init__(self, a):
        super().__init__(a=a, b=a.copy('copy'))
    def forward(self, x, ids):
        return self.a(x, ids) - 0.5 * self.b(x, ids)
both = Pairs(model)
second = chainer.optimizers.SGD(0.1).setup(both)
second.update(both, x, ids)
notes_of('both', (p.array for p in params(both)))
model.name = None
optimizer.setup(model)
loss = model(x, ids)
""",
    """
loss = model(x, ids)
model.cleargrads()
loss.grad = np.array(-0.5, DTYPE)
loss.backward()
loss.backward()
notes_of('grad', (p.grad for p in params(model)))
optimizer.update()
""",
    """
v = chainer.Parameter(x.copy())
loss = model(v, ids) + F.sum(v) * 0.1
model.cleargrads()
loss.backward()
note('input grad', v.grad)
v.cleargrad()
loss = model(v * 2, ids)
loss.backward()
note('input grad', v.grad)
optimizer.update()
""",
    """
def compute():
    with chainer.using_config('train', False):
        return model(x, ids)
optimizer.update(compute)
loss = compute()
""",
    """
loss = sum(model(x * k, ids) for k in (1, 0.5)) / 2
model.cleargrads()
loss.backward()
del loss
optimizer.update()
loss = model(x, ids)
""",
)

SAVED = (
    """
place = io.BytesIO()
chainer.serializers.save_npz(place, model)
state = io.BytesIO()
chainer.serializers.save_npz(state, optimizer)
model, optimizer = start()
place.seek(0)
state.seek(0)
chainer.serializers.load_npz(place, model)
chainer.serializers.load_npz(state, optimizer)
""",
    """
with tempfile.TemporaryDirectory() as folder:
    place = os.path.join(folder, 'a.h5')
    chainer.serializers.save_hdf5(place, model)
    chainer.serializers.save_hdf5(place + 'o', optimizer)
    model, optimizer = start()
    chainer.serializers.load_hdf5(place, model)
    chainer.serializers.load_hdf5(place + 'o', optimizer)
""",
    """
place = io.BytesIO()
chainer.serializers.save_npz(place, model)
place.seek(0)
other = Model()
chainer.serializers.load_npz(place, other)
model.copypersist = getattr(model, 'copypersist', None)
with chainer.using_config('train', False):
    note('loaded', other(x, ids))
""",
)

COMMON = """

def params(link):
    return [p for _, p in sorted(link.namedparams())]


def notes_of(name, values):
    for i, value in enumerate(values):
        note('%s %d' % (name, i), value)


def saved(name, value):
    target = chainer.serializers.DictionarySerializer()
    target.save(value)
    for key in sorted(target.target):
        note('%s %s' % (name, key), target.target[key])


x = drawn(2, SHAPE, -1, 1)
ids = np.array([1, 0, 4, 1], 'i')
"""


def _split(text: str) -> list[str]:
    return [one.strip() for one in text.replace("\n", " ").split(" | ")]


def _start(source: random.Random) -> str:
    """Return the function that makes model and optimizer."""
    optimizer = source.choice(_split(OPTIMIZERS))
    lines = ["def start():", "    model = Model()"]
    if source.random() < 0.7:
        lines += [
            "    with chainer.using_config('train', False), chainer.no_backprop_mode():",
            "        model(x, ids)",
        ]
    lines += [f"    optimizer = chainer.optimizers.{optimizer}", "    optimizer.setup(model)"]
    for hook in source.sample(_split(HOOKS), source.choice([0, 0, 1, 2])):
        timing = source.choice(
            ["", ", timing='post'"] if "Decay" in hook or "Lasso" in hook else [""]
        )
        lines.append(f"    optimizer.add_hook(chainer.optimizer_hooks.{hook}{timing})")
    return "\n".join([*lines, "    return model, optimizer"])


def training(source: random.Random) -> str:
    """Return the lines that train the model."""
    parts = [COMMON, _start(source), "\nmodel, optimizer = start()\n"]
    count = source.randrange(2, 6)
    for i in range(count):
        if i and source.random() < 0.25:
            parts.append(source.choice(SAVED))
        parts += [f"\nnote('step {i}', {i})", source.choice(STEPS), "note('loss', loss)"]
        if source.random() < 0.5:
            parts.append("\nnotes_of('param', (p.array for p in params(model)))")
    parts.append("\nsaved('model', model)\nsaved('optimizer', optimizer)\n")
    return "".join(parts)
