"""Updates by every optimizer and hook, hooks of links, modes and snapshots, as Chainer 7 has them.

Run by Chainer or by ``hagane chainer``: ``rules.py`` prints its numbers as JSON.
"""

import json
import os
import tempfile

import chainer
import chainer.function_hooks
import chainer.functions as F  # noqa: N812
import chainer.link_hooks
import chainer.links as L  # noqa: N812
import numpy as np
from chainer import optimizer_hooks, optimizers

OPTIMIZERS = {
    "SGD": {"lr": 0.1},
    "MomentumSGD": {"lr": 0.1, "momentum": 0.8},
    "NesterovAG": {"lr": 0.1},
    "CorrectedMomentumSGD": {"lr": 0.1},
    "MSVAG": {"lr": 0.1},
    "AdaGrad": {"lr": 0.1},
    "AdaDelta": {"rho": 0.9, "eps": 1e-4},
    "RMSprop": {"lr": 0.01, "alpha": 0.9},
    "RMSpropGraves": {"lr": 0.01},
    "SMORMS3": {"lr": 0.01},
    "Adam": {"alpha": 0.01},
    "AdamW": {"alpha": 0.01, "weight_decay_rate": 0.1},
    "AMSGrad": {"alpha": 0.01},
    "AdaBound": {"alpha": 0.01},
    "AMSBound": {"alpha": 0.01},
}
HOOKS = {
    "none": None,
    "WeightDecay": (0.01,),
    "Lasso": (0.01,),
    "GradientClipping": (0.5,),
    "GradientHardClipping": (-0.05, 0.05),
    "GradientNoise": (0.1,),
    "GradientLARS": (0.01, 0.1),
}


class Body(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(4, 5)
            self.b = L.Linear(5, 3)
            self.scale = chainer.Parameter(1.0, ())

    def forward(self, x, t):
        h = F.tanh(self.a(x)) * F.broadcast_to(self.scale, (len(x), 5))
        return F.softmax_cross_entropy(self.b(h), t)


def rows():
    random = np.random.RandomState(2)
    return random.randn(8, 4).astype("f"), random.randint(0, 3, 8).astype("i")


def parameters(model):
    """Return two sums of all parameters, which tell permutations apart."""
    whole = np.concatenate([p.array.ravel() for _, p in sorted(model.namedparams())])
    return [float(abs(whole).sum()), float(whole @ np.cos(np.arange(whole.size)))]


def updates(name, hook, timing="auto"):
    """Return the sums after three updates, during one of which a parameter is left alone."""
    np.random.seed(3)
    model = Body()
    optimizer = getattr(optimizers, name)(**OPTIMIZERS[name]).setup(model)
    if HOOKS[hook] is not None:
        made = getattr(optimizer_hooks, hook)(*HOOKS[hook])
        optimizer.add_hook(made, name="first")
        optimizer.remove_hook("first")
        optimizer.add_hook(made, timing=timing)
    for step in range(3):
        model.a.b.update_rule.enabled = step != 1
        optimizer.update(model, *rows())
    return [*parameters(model), optimizer.t]


def modes():
    """Return where functions are recorded, and where training is on."""
    x = chainer.Variable(np.ones(2, "f"))
    found = []

    def note():
        found.append(float((x * 2).creator is not None))

    note()
    with chainer.no_backprop_mode():
        note()
        with chainer.force_backprop_mode():
            note()
        with chainer.using_config("enable_backprop", True):
            note()
        note()
    note()
    with chainer.using_config("train", False):
        found.append(float(np.all(F.dropout(x, 0.9).array == x.array)))
    return found


class Noted(chainer.LinkHook):
    name = "Noted"

    def __init__(self):
        self.seen = []

    def added(self, link):
        self.seen.append(1.0 if link is None else 2.0)

    def deleted(self, link):
        self.seen.append(3.0 if link is None else 4.0)

    def forward_preprocess(self, args):
        self.seen += [5.0, len(args.args), len(args.kwargs), float(args.forward_name == "forward")]

    def forward_postprocess(self, args):
        self.seen += [6.0, args.out.ndim]


def link_hooks():
    """Return the calls of a hook, and what the hooks that come with Chainer do to weights."""
    np.random.seed(4)
    model, (x, t) = Body(), rows()
    hook = Noted()
    model.a.add_hook(hook)
    model(x, t)
    model.a.delete_hook("Noted")
    with hook:
        model(x, t=t)
    with chainer.link_hooks.TimerHook() as timer:
        model(x, t)
    found = [*hook.seen, len(timer.call_history)]
    link = L.Linear(4, 3)
    link.add_hook(chainer.link_hooks.WeightStandardization())
    link.cleargrads()
    F.sum(F.sin(link(x))).backward()
    found += link.W.grad.ravel().tolist()
    link = L.Linear(4, 3)
    link.add_hook(chainer.link_hooks.SpectralNormalization(n_power_iteration=2, use_gamma=True))
    optimizer = optimizers.SGD(0.1).setup(link)
    for _ in range(2):
        y = link(x)
        link.cleargrads()
        F.sum(y * y).backward()
        optimizer.update()
    return [*found, *link.W.array.ravel().tolist(), *link.gamma.array.ravel().tolist()]


def layouts():
    """Return the names in snapshots of a model, one part of which is loaded from a path."""
    np.random.seed(5)
    model = L.Classifier(chainer.Sequential(L.Linear(4, 3), F.relu, L.BatchNormalization(3)))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        chainer.serializers.save_npz(os.path.join(folder, "a.npz"), model)
        with np.load(os.path.join(folder, "a.npz")) as held:
            found["npz"] = sorted(f"{name}{list(held[name].shape)}" for name in held.files)
        chainer.serializers.save_hdf5(os.path.join(folder, "a.h5"), model)
        import h5py

        with h5py.File(os.path.join(folder, "a.h5"), "r") as held:
            names = []
            held.visititems(lambda name, one: names.append(f"{name}{getattr(one, 'shape', '')}"))
            found["hdf5"] = sorted(names)
        part = L.Linear(4, 3)
        path = "predictor/0/"
        chainer.serializers.load_npz(os.path.join(folder, "a.npz"), part, path=path)
        found["part"] = float(abs(part.W.array - model.predictor[0].W.array).sum())
    return found


def main():
    found = {"modes": modes(), "link_hooks": link_hooks(), "layouts": layouts()}
    for name in OPTIMIZERS:
        for hook in HOOKS:
            found[f"{name} {hook}"] = updates(name, hook)
    found["SGD WeightDecay post"] = updates("SGD", "WeightDecay", "post")
    found["Adam GradientClipping post"] = updates("Adam", "GradientClipping", "post")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
