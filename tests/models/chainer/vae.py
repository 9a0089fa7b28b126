"""A variational autoencoder (Kingma and Welling, 2013)."""

import chainer
import chainer.functions as F
import chainer.links as L


class VAE(chainer.Chain):
    def __init__(self, n_in, n_latent, n_h, beta=1.0, k=1):
        super(VAE, self).__init__()
        self.beta = beta
        self.k = k
        with self.init_scope():
            self.le1 = L.Linear(n_in, n_h)
            self.le2_mu = L.Linear(n_h, n_latent)
            self.le2_ln_var = L.Linear(n_h, n_latent)
            self.ld1 = L.Linear(n_latent, n_h)
            self.ld2 = L.Linear(n_h, n_in)

    def encode(self, x):
        h1 = F.tanh(self.le1(x))
        mu = self.le2_mu(h1)
        ln_var = self.le2_ln_var(h1)
        return mu, ln_var

    def decode(self, z, sigmoid=True):
        h1 = F.tanh(self.ld1(z))
        h2 = self.ld2(h1)
        if sigmoid:
            return F.sigmoid(h2)
        return h2

    def forward(self, x, sigmoid=True):
        return self.decode(self.encode(x)[0], sigmoid)

    def get_loss_func(self):
        def lf(x):
            mu, ln_var = self.encode(x)
            batchsize = len(mu)
            rec_loss = 0
            for _ in range(self.k):
                z = F.gaussian(mu, ln_var)
                y = self.decode(z, sigmoid=False)
                rec_loss += F.bernoulli_nll(x, y) / (self.k * batchsize)
            kl = F.gaussian_kl_divergence(mu, ln_var) / batchsize
            loss = rec_loss + self.beta * kl
            chainer.report({"rec_loss": rec_loss, "loss": loss}, observer=self)
            return loss

        return lf

    def loss(self, x):
        lossfun = self.get_loss_func()
        return lossfun(x.reshape(x.shape[0], -1))

    def interpolate(self, first, second, n=5):
        """Return decoded pictures on the way from one to another: (n, n_in)."""
        with chainer.no_backprop_mode(), chainer.using_config("train", False):
            start, _ = self.encode(first[None])
            end, _ = self.encode(second[None])
            steps = self.xp.linspace(0, 1, n, dtype=start.dtype)[:, None]
            z = F.broadcast_to(start, (n, start.shape[1])) * (1 - steps)
            z += F.broadcast_to(end, (n, end.shape[1])) * steps
            pictures = self.decode(z)
        return pictures.array
