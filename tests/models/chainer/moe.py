"""A mixture of experts (Shazeer et al., 2017): a gate chooses k experts for each row."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


def cv_squared(x):
    mean = F.mean(x)
    variance = F.mean((x - F.broadcast_to(mean, x.shape)) ** 2)
    return variance / (mean**2 + 1e-6)


class Expert(chainer.Chain):
    def __init__(self, n_in, n_hidden, n_out):
        super(Expert, self).__init__()
        with self.init_scope():
            self.l1 = L.Linear(n_in, n_hidden)
            self.l2 = L.Linear(n_hidden, n_out)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


class NoisyGate(chainer.Chain):
    def __init__(self, n_in, n_expert, k):
        super(NoisyGate, self).__init__()
        self.n_expert = n_expert
        self.k = k
        with self.init_scope():
            self.w_gate = L.Linear(n_in, n_expert, nobias=True)
            self.w_noise = L.Linear(n_in, n_expert, nobias=True)

    def forward(self, x):
        xp = self.xp
        h = self.w_gate(x)
        if chainer.config.train:
            noise = xp.random.normal(size=h.shape).astype(h.dtype)
            h = h + noise * F.softplus(self.w_noise(x))
        order = xp.argsort(h.array, axis=1)[:, ::-1]
        chosen = order[:, : self.k]
        one_hot = xp.eye(self.n_expert, dtype=bool)[chosen]
        mask = one_hot.any(axis=1)
        lowest = xp.full(h.shape, -1e9, dtype=h.dtype)
        return F.softmax(F.where(mask, h, lowest), axis=1), mask


class MixtureOfExperts(chainer.Chain):
    def __init__(self, n_in, n_hidden, n_out, n_expert=4, k=2):
        super(MixtureOfExperts, self).__init__()
        experts = [Expert(n_in, n_hidden, n_out) for _ in range(n_expert)]
        with self.init_scope():
            self.experts = chainer.ChainList(*experts)
            self.gate = NoisyGate(n_in, n_expert, k)

    def forward(self, x):
        weights, mask = self.gate(x)
        outputs = [expert(x) for expert in self.experts]
        stacked = F.stack(outputs, axis=1)
        mixed = F.matmul(F.expand_dims(weights, 1), stacked)
        y = F.squeeze(mixed, axis=1)
        return y, self.balance(weights, mask)

    def balance(self, weights, mask):
        """Return the squared coefficients of variation of the experts' importance and load."""
        importance = F.sum(weights, axis=0)
        load = mask.sum(axis=0).astype(np.float32)
        return cv_squared(importance) + cv_squared(load)


class MoEClassifier(chainer.Chain):
    def __init__(self, n_in, n_units, n_class, n_layer=2, n_expert=4, k=2):
        super(MoEClassifier, self).__init__()
        with self.init_scope():
            self.embed = L.Linear(n_in, n_units)
            self.layers = chainer.ChainList()
            for _ in range(n_layer):
                self.layers.add_link(
                    MixtureOfExperts(n_units, 2 * n_units, n_units, n_expert=n_expert, k=k)
                )
            self.fc = L.Linear(None, n_class)

    def forward(self, x, t):
        batch, length, n_in = x.shape
        h = self.embed(x.reshape(-1, n_in))
        penalties = []
        for layer in self.layers:
            dh, penalty = layer(h)
            h = h + dh
            penalties.append(penalty)
        h = F.mean(F.reshape(h, (batch, length, -1)), axis=1)
        y = self.fc(h)
        loss = F.softmax_cross_entropy(y, t)
        loss += 0.01 * sum(penalties)
        return loss
