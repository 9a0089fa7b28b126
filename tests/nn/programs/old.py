"""Programs as they were written for Chainer 7: each returns numbers that follow from its seed.

Run by Chainer or by ``hagane chainer``: ``old.py [NAME ...]`` prints them as JSON.
"""

import collections
import json
import os
import sys
import tempfile

import chainer
import chainer.functions as F  # noqa: N812
import chainer.links as L  # noqa: N812
import numpy as np
from chainer import link_hooks, training
from chainer.training import extensions


def points(count, seed=0):
    random = np.random.RandomState(seed)
    x = random.randn(count, 6).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int32)


class MLP(chainer.Chain):
    def __init__(self, units, out):
        super(MLP, self).__init__()  # noqa: UP008
        with self.init_scope():
            self.l1 = L.Linear(None, units)
            self.l2 = L.Linear(None, out)

    def __call__(self, x):
        return self.l2(F.tanh(self.l1(x)))


class OldProduct(chainer.Function):
    """An old-style function."""

    def check_type_forward(self, in_types):
        chainer.utils.type_check.expect(
            in_types.size() == 2, in_types[0].shape == in_types[1].shape
        )

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        a, b = inputs
        return a * b, a + b

    def backward(self, inputs, grad_outputs):
        a, b = inputs
        g, h = grad_outputs
        g = np.zeros_like(a) if g is None else g
        h = np.zeros_like(a) if h is None else h
        return g * b + h, g * a + h


class Cube(chainer.FunctionNode):
    """A new-style function, differentiable twice."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (3 * x * x * grad_outputs[0],)


def custom_functions():
    a = chainer.Variable(np.arange(1, 5, dtype=np.float32))
    b = chainer.Variable(np.arange(4, 8, dtype=np.float32)[::-1].copy())
    y, z = OldProduct()(a, b)
    loss = F.sum(y * y) + F.sum(z)
    loss.backward()
    found = [loss.array, a.grad.sum(), b.grad.sum()]
    x = chainer.Variable(np.linspace(-1, 1, 5).astype(np.float32))
    (y,) = Cube().apply((x,))
    (gx,) = chainer.grad([y], [x], enable_double_backprop=True)
    penalty = F.sum((gx - 1) ** 2)
    x.cleargrad()
    penalty.backward()
    return [*found, penalty.array, *x.grad]


class Tagger(chainer.Chain):
    def __init__(self, words, tags, units):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(words, units, ignore_label=-1)
            self.rnn = L.NStepBiLSTM(2, units, units, dropout=0.0)
            self.out = L.Linear(2 * units, tags)
            self.crf = L.CRF1d(tags)

    def scores(self, xs):
        sections = np.cumsum([len(x) for x in xs[:-1]])
        embedded = F.split_axis(self.embed(F.concat(xs, axis=0)), sections, 0)
        _, _, ys = self.rnn(None, None, embedded)
        return F.split_axis(self.out(F.concat(ys, axis=0)), sections, 0)

    def __call__(self, xs, ts):
        loss = F.softmax_cross_entropy(F.concat(self.scores(xs), axis=0), np.concatenate(ts))
        loss += 0.1 * self.crf(self.scores(xs), ts, transpose=True)
        chainer.report({"loss": loss}, self)
        return loss


def sequence_tagger():
    np.random.seed(1)
    random = np.random.RandomState(2)
    data = []
    for length in random.randint(2, 9, 40):
        x = random.randint(0, 12, length).astype(np.int32)
        data.append((x, ((x + np.roll(x, 1)) % 3).astype(np.int32)))

    def convert(batch, device):
        return {"xs": [x for x, _ in batch], "ts": [t for _, t in batch]}

    model = Tagger(12, 3, 8)
    optimizer = chainer.optimizers.Adam(alpha=0.01)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer.GradientClipping(1.0))
    iterator = chainer.iterators.SerialIterator(data, 8)
    updater = training.StandardUpdater(iterator, optimizer, converter=convert)
    found = []
    while updater.epoch < 4:
        reporter, observation = chainer.Reporter(), {}
        reporter.add_observer("main", model)
        with reporter.scope(observation):
            updater.update()
        found.append(observation["main/loss"].array)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        _, path = model.crf.argmax(model.scores([data[0][0]]), transpose=True)
    return [found[0], found[-1], *path[0]]


class GANUpdater(training.StandardUpdater):
    def __init__(self, *args, **kwargs):
        self.gen, self.dis = kwargs.pop("models")
        super().__init__(*args, **kwargs)

    def update_core(self):
        gen_optimizer = self.get_optimizer("gen")
        dis_optimizer = self.get_optimizer("dis")
        real = chainer.Variable(self.converter(self.get_iterator("main").next(), self.device))
        xp = chainer.backend.get_array_module(real.array)
        noise = xp.asarray(np.random.normal(size=(len(real), 4)).astype(np.float32))
        fake = self.gen(noise)
        y_fake, y_real = self.dis(fake), self.dis(real)
        loss_dis = F.sum(F.softplus(-y_real)) / len(real) + F.sum(F.softplus(y_fake)) / len(real)
        loss_gen = F.sum(F.softplus(-y_fake)) / len(real)
        self.gen.cleargrads()
        loss_gen.backward()
        gen_optimizer.update()
        fake.unchain_backward()
        self.dis.cleargrads()
        loss_dis.backward()
        dis_optimizer.update()
        chainer.reporter.report({"loss": loss_gen}, self.gen)
        chainer.reporter.report({"loss": loss_dis}, self.dis)


class Generator(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            w = chainer.initializers.Normal(0.1)
            self.l0 = L.Linear(4, 16, initialW=w)
            self.bn = L.BatchNormalization(16)
            self.dc = L.Deconvolution2D(4, 1, 4, 2, 1, initialW=w)

    def __call__(self, z):
        h = F.reshape(F.leaky_relu(self.bn(self.l0(z))), (len(z), 4, 2, 2))
        return F.sigmoid(self.dc(h))


class Discriminator(chainer.Chain):
    def __init__(self):
        super().__init__(
            c0=L.Convolution2D(1, 4, 3, pad=1), l1=L.Linear(None, 1)
        )  # the way of version 1
        self.c0.add_hook(link_hooks.SpectralNormalization())

    def __call__(self, x):
        h = F.dropout(F.elu(self.c0(x)), 0.1)
        return self.l1(F.average_pooling_2d(h, 2))


def two_optimizers():
    np.random.seed(3)
    images = np.random.RandomState(4).rand(24, 1, 4, 4).astype(np.float32)
    gen, dis = Generator(), Discriminator()
    made = {}
    for name, model in (("gen", gen), ("dis", dis)):
        made[name] = chainer.optimizers.Adam(alpha=2e-3, beta1=0.5)
        made[name].setup(model)
        made[name].add_hook(chainer.optimizer_hooks.WeightDecay(1e-4), "decay")
    iterator = chainer.iterators.SerialIterator(images, 8)
    updater = GANUpdater(iterator, made, models=(gen, dis))
    with tempfile.TemporaryDirectory() as out:
        trainer = training.Trainer(updater, (4, "epoch"), out=out)
        trainer.extend(extensions.LogReport(trigger=(1, "epoch"), log_name="log"))
        trainer.extend(extensions.snapshot_object(gen, "gen.npz"), trigger=(4, "epoch"))
        trainer.run()
        with open(os.path.join(out, "log")) as file:
            log = json.load(file)
        other = Generator()
        chainer.serializers.load_npz(os.path.join(out, "gen.npz"), other)
    with chainer.using_config("train", False):
        image = other(np.ones((1, 4), np.float32))
    return [entry[key] for entry in log for key in ("gen/loss", "dis/loss")] + [
        image.array.sum(),
        float(other.bn.N),
    ]


class Halved(training.StandardUpdater):
    """An updater that takes two batches, and adds their gradients."""

    def update_core(self):
        optimizer = self.get_optimizer("main")
        model = optimizer.target
        model.cleargrads()
        for _ in range(2):
            x, t = self.converter(self.get_iterator("main").next(), self.device)
            (model(x, t) * 0.5).backward()
        optimizer.update()


def trainer_of(out, epochs):
    np.random.seed(5)
    x, t = points(60)
    data = chainer.datasets.TupleDataset(x, t)
    train, test = chainer.datasets.split_dataset(data, 48)
    model = L.Classifier(MLP(8, 2))
    optimizer = chainer.optimizers.MomentumSGD(lr=0.2).setup(model)
    updater = Halved(chainer.iterators.SerialIterator(train, 8), optimizer)
    trainer = training.Trainer(updater, (epochs, "epoch"), out=out)
    evaluator = extensions.Evaluator(
        chainer.iterators.SerialIterator(test, 8, repeat=False, shuffle=False), model
    )
    trainer.extend(evaluator)
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.ExponentialShift("lr", 0.5), trigger=(2, "epoch"))
    trainer.extend(extensions.observe_lr())
    trainer.extend(extensions.snapshot(filename="s_{.updater.epoch}"), trigger=(1, "epoch"))

    @training.make_extension(trigger=(2, "iteration"), priority=training.PRIORITY_WRITER)
    def count(trainer):
        chainer.report({"count": trainer.updater.iteration})

    trainer.extend(count)
    return trainer, model


def resumed():
    with tempfile.TemporaryDirectory() as out:
        trainer, _ = trainer_of(out, 3)
        trainer.run()
        trainer, _ = trainer_of(out, 5)
        chainer.serializers.load_npz(os.path.join(out, "s_3"), trainer)
        first = [trainer.updater.epoch, trainer.updater.iteration]
        trainer.run()
        log = trainer.get_extension("LogReport").log
        lr = trainer.updater.get_optimizer("main").lr
        with np.load(os.path.join(out, "s_3")) as held:
            names = sorted(name for name in held.files if "optimizer" in name)
    keys = ("main/loss", "validation/main/accuracy", "lr", "count")
    return (
        first
        + [entry[key] for entry in log[:3] for key in keys]
        + [len(log), lr, len(names), float(sum(map(len, names)))]
    )


class Counting(chainer.LinkHook):
    name = "Counting"

    def __init__(self):
        self.seen = collections.Counter()

    def forward_preprocess(self, args):
        self.seen["before " + args.link.__class__.__name__] += 1

    def forward_postprocess(self, args):
        self.seen["after " + args.link.__class__.__name__] += args.out.array.ndim


class Functions(chainer.FunctionHook):
    name = "Functions"

    def __init__(self):
        self.seen = []

    def forward_postprocess(self, function, in_data):
        self.seen.append(function.label)

    def backward_preprocess(self, function, in_data, out_grad):
        self.seen.append("back " + function.label)


def hooks():
    np.random.seed(6)
    x, t = points(5)
    model = L.Classifier(MLP(4, 2))
    with Counting() as links, Functions() as functions, chainer.function_hooks.TimerHook() as timer:
        loss = model(x, t)
        loss.backward()
    links.seen.pop("after Classifier")
    named = [label for label in functions.seen if "LinearFunction" in label or "Tanh" in label]
    return [loss.array, *sorted(links.seen.values()), len(timer.summary()) > 3, len(named) >= 0]


@chainer.dataset.converter()
def with_weights(batch, device):
    x, t = chainer.dataset.concat_examples(batch, device)
    return {"x": x, "t": t, "weight": device.send(np.arange(1, len(t) + 1, dtype=np.float32))}


class Several(chainer.Chain):
    """Several losses, parameters of its own, and saved values."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.body = MLP(5, 4)
            self.scale = chainer.Parameter(0.5, (4,))
            self.late = chainer.Parameter(chainer.initializers.Constant(0.1))
            self.heads = chainer.ChainList(L.Linear(4, 2), L.Linear(4, 3, nobias=True))
        self.add_persistent("calls", 0)
        self.history = np.zeros(2, np.float32)
        self.register_persistent("history")

    def __call__(self, x, t, weight):
        self.calls += 1
        h = self.body(x) * F.broadcast_to(self.scale, (len(x), 4))
        if not self.late.is_initialized:
            self.late.initialize((1, 4))
        h += F.broadcast_to(self.late, h.shape)
        first = F.sum(F.softmax_cross_entropy(self.heads[0](h), t, reduce="no") * weight)
        second = F.mean_squared_error(self.heads[1](h), np.zeros((len(x), 3), np.float32))
        third = F.contrastive(h[:3], h[3:6], (t[:3] == t[3:6]).astype(np.int32))
        total = first / weight.sum() + 0.3 * second + 0.1 * third
        chainer.report({"loss": total, "first": first, "second": second}, self)
        return total


def losses_and_rules():
    np.random.seed(7)
    x, t = points(30)
    model = Several()
    optimizer = chainer.optimizers.AdaDelta(rho=0.9)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.Lasso(1e-3))
    optimizer.add_hook(chainer.optimizer_hooks.GradientHardClipping(-0.5, 0.5))
    data = chainer.datasets.TupleDataset(x, t)
    updater = training.updaters.StandardUpdater(
        chainer.iterators.SerialIterator(data, 6), optimizer, with_weights, "@numpy"
    )
    found, reporter = [], chainer.Reporter()
    reporter.add_observer("m", model)
    reporter.add_observers("m", model.namedlinks(skipself=True))
    for i in range(8):
        if i == 3:
            model.body.l1.disable_update()
        if i == 5:
            model.body.l1.enable_update()
            model.scale.update_rule.hyperparam.rho = 0.5
        observation = {}
        with reporter.scope(observation):
            updater.update()
        found += [observation["m/" + key].array for key in ("loss", "first", "second")]
    summary = chainer.DictSummary()
    for i in range(3):
        summary.add({"a": i, "b": (float(i * i), 2.0)})
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        chainer.serializers.save_npz(file, model)
        file.seek(0)
        with np.load(file.name) as held:
            names = sorted(held.files)
        other = Several()
        chainer.serializers.load_npz(file.name, other)
    norms = [float(abs(p.array).sum()) for _, p in sorted(other.namedparams())]
    return [*found, other.calls, len(names), *norms, *sorted(summary.compute_mean().values())]


class Trust(chainer.optimizer.UpdateRule):
    """A rule of the program's own: sign descent with a slow mean."""

    def __init__(self, parent_hyperparam=None, lr=None):
        super().__init__(parent_hyperparam or chainer.optimizer.Hyperparameter())
        if lr is not None:
            self.hyperparam.lr = lr

    def init_state(self, param):
        with chainer.using_device(param.device):
            self.state["slow"] = np.zeros_like(param.array)

    def update_core_cpu(self, param):
        slow = self.state["slow"]
        slow += 0.1 * (param.grad - slow)
        param.array -= self.hyperparam.lr * np.sign(slow)


class SignDescent(chainer.optimizer.GradientMethod):
    def __init__(self, lr=0.01):
        super().__init__()
        self.hyperparam.lr = lr

    lr = chainer.optimizer.HyperparameterProxy("lr")

    def create_update_rule(self):
        return Trust(self.hyperparam)


def own_optimizer():
    np.random.seed(8)
    x, t = points(40)
    model = L.Classifier(MLP(6, 2), accfun=None)
    model.compute_accuracy = False
    optimizer = SignDescent(0.02).setup(model)
    found = []
    for _ in range(6):
        optimizer.update(model, x, t)
        found.append(model.loss.array)
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        chainer.serializers.save_npz(file.name, optimizer)
        again = SignDescent(1.0).setup(L.Classifier(MLP(6, 2)))
        again.target(x, t)
        chainer.serializers.load_npz(file.name, again)
    slow = [float(abs(p.update_rule.state["slow"]).sum()) for p in again.target.params()]
    return [*found, again.t, again.lr, sum(slow)]


class Recurrent(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(9, 5)
            self.rnn = L.StatefulGRU(5, 7)
            self.peep = L.StatefulPeepholeLSTM(7, 6)
            self.out = L.Linear(6, 9)

    def reset_state(self):
        self.rnn.reset_state()
        self.peep.reset_state()

    def __call__(self, x):
        return self.out(self.peep(self.rnn(self.embed(x))))


def truncated():
    np.random.seed(9)
    random = np.random.RandomState(10)
    tokens = random.randint(0, 9, (20, 4)).astype(np.int32)
    model = L.Classifier(Recurrent())
    optimizer = chainer.optimizers.RMSprop(lr=0.01).setup(model)
    found = []
    model.predictor.reset_state()
    for start in range(0, 18, 6):
        loss = 0
        for i in range(start, start + 6):
            loss += model(tokens[i], tokens[i + 1])
        found.append(loss.array)
        model.cleargrads()
        loss.backward()
        loss.unchain_backward()
        optimizer.update()
    copied = model.copy()
    copied.predictor.reset_state()
    return [*found, copied(tokens[0], tokens[1]).array, model.predictor.rnn.h.array.sum()]


def q_learning():
    np.random.seed(11)
    random = np.random.RandomState(12)
    online, target = MLP(10, 3), MLP(10, 3)
    x = random.randn(16, 4).astype(np.float32)
    online(x), target(x)
    target.copyparams(online)
    optimizer = chainer.optimizers.RMSpropGraves().setup(online)
    found = []
    for step in range(5):
        action = random.randint(0, 3, 16).astype(np.int32)
        q = F.select_item(online(x), action)
        with chainer.no_backprop_mode():
            y = F.max(target(x[::-1].copy()), axis=1)
        loss = F.mean(F.huber_loss(q, 0.9 * y.array + 0.1, 1.0, reduce="no"))
        online.cleargrads()
        loss.backward()
        optimizer.update()
        found.append(loss.array)
        if step == 2:
            for ours, theirs in zip(target.params(), online.params()):  # noqa: B905
                ours.array[...] = 0.9 * ours.array + 0.1 * theirs.array
    policy = F.softmax(online(x))
    entropy = -F.sum(policy * F.log(policy + 1e-8)) / len(x)
    return [*found, entropy.array]


class Pictures(chainer.dataset.DatasetMixin):
    def __init__(self, count):
        self.images = np.random.RandomState(13).rand(count, 3, 8, 8).astype(np.float32)

    def __len__(self):
        return len(self.images)

    def get_example(self, i):
        return self.images[i], np.int32(self.images[i, 0].mean() > 0.5)


def coder():
    np.random.seed(14)

    class Fan(chainer.initializer.Initializer):
        def __call__(self, array):
            fan_in, fan_out = chainer.initializer.get_fans(array.shape)
            array[...] = np.random.uniform(-1, 1, array.shape) / np.sqrt(fan_in + fan_out)

    class Coder(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.conv = L.Convolution2D(3, 4, 3, pad=1, initialW=Fan())
                self.norm = L.GroupNormalization(2)
                self.shuffle = L.Convolution2D(4, 12, 1)
                self.dilated = L.DilatedConvolution2D(3, 3, 3, pad=2, dilate=2)
            self.blocks = []

        def __call__(self, x):
            h = F.relu(self.norm(self.conv(x)))
            pooled, indices = F.max_pooling_2d(h, 2, return_indices=True)
            h = F.upsampling_2d(pooled, indices, 2, outsize=h.shape[2:])
            h = F.depth2space(self.shuffle(F.average_pooling_2d(h, 2)), 2)
            return self.dilated(F.pad(h, ((0, 0), (0, 0), (0, 0), (0, 0)), "constant") * 2 - 1)

    model = Coder()
    optimizer = chainer.optimizers.NesterovAG(lr=0.05).setup(model)
    data = chainer.datasets.TransformDataset(Pictures(12), lambda pair: (pair[0], pair[0] * 2 - 1))
    found = []
    iterator = chainer.iterators.SerialIterator(data, 4, repeat=True, shuffle=True)
    for batch in [next(iterator) for _ in range(6)]:
        x, y = chainer.dataset.concat_examples(batch, padding=0)
        loss = (
            F.mean_absolute_error(model(x), y)
            + F.huber_loss(F.flatten(model(x))[None], y.reshape(1, -1), 1.0) / y.size
        )
        model.cleargrads()
        loss.backward(loss_scale=2.0)
        for param in model.params():
            param.grad /= 2.0
        optimizer.update()
        found.append(loss.array.reshape(-1)[0])
    graph = chainer.computational_graph.build_computational_graph([loss])
    return [*found, len(graph.nodes) > 20, graph.dump().startswith("digraph")]


def debugging():
    found = []
    with chainer.using_config("debug", True):
        try:
            F.log(chainer.Variable(np.array([-1.0], np.float32)))
        except RuntimeError:
            found.append(1)
    x = chainer.Variable(np.ones((2, 3), np.float32), name="x")
    try:
        L.Linear(4, 2)(x)
    except chainer.utils.type_check.InvalidType:
        found.append(2)
    y = F.sum(x * x, axis=1)
    try:
        y.backward()
    except Exception:
        found.append(3)
    y = x * 2
    y.grad = np.ones_like(y.array)
    z = F.sum(y)
    z.backward(retain_grad=True)
    found += [y.grad.sum(), x.grad_var.array.sum()]
    model = chainer.Sequential(L.Linear(3, 3), F.relu, L.BatchNormalization(3)).repeat(2, "copy")
    found += [len(model), len(list(model.namedlinks())), model(x.array).shape[1]]
    with chainer.using_config("enable_backprop", False):
        found.append(model(x).creator is None)
    return found


PROGRAMS = {
    function.__name__: function
    for function in (
        custom_functions, sequence_tagger, two_optimizers, resumed, hooks, losses_and_rules,
        own_optimizer, truncated, q_learning, coder, debugging,
    )
}  # fmt: skip


def main():
    found = {}
    for name in sys.argv[1:] or PROGRAMS:
        found[name] = [float(value) for value in PROGRAMS[name]()]
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
