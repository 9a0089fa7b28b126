"""DCGAN (Radford et al., 2015): a generator of pictures and its adversary."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


def add_noise(h, sigma=0.2):
    if chainer.config.train:
        xp = chainer.backend.get_array_module(h.array)
        noise = xp.random.randn(*h.shape)
        return h + (sigma * noise).astype(np.float32)
    return h


class Generator(chainer.Chain):
    def __init__(self, n_hidden, bottom_width=4, ch=512, wscale=0.02):
        super(Generator, self).__init__()
        self.n_hidden = n_hidden
        self.ch = ch
        self.bottom_width = bottom_width
        with self.init_scope():
            w = chainer.initializers.Normal(wscale)
            self.l0 = L.Linear(self.n_hidden, bottom_width * bottom_width * ch, initialW=w)
            self.dc1 = L.Deconvolution2D(ch, ch // 2, 4, 2, 1, initialW=w)
            self.dc2 = L.Deconvolution2D(ch // 2, ch // 4, 4, 2, 1, initialW=w)
            self.dc3 = L.Deconvolution2D(ch // 4, ch // 8, 4, 2, 1, initialW=w)
            self.dc4 = L.Deconvolution2D(ch // 8, 3, 3, 1, 1, initialW=w)
            self.bn0 = L.BatchNormalization(bottom_width * bottom_width * ch)
            self.bn1 = L.BatchNormalization(ch // 2)
            self.bn2 = L.BatchNormalization(ch // 4)
            self.bn3 = L.BatchNormalization(ch // 8)

    def make_hidden(self, batchsize):
        shape = (batchsize, self.n_hidden, 1, 1)
        return self.xp.random.uniform(-1, 1, shape).astype(self.xp.float32)

    def forward(self, z):
        batchsize = len(z)
        h = F.relu(self.bn0(self.l0(z)))
        h = F.reshape(h, (batchsize, self.ch, self.bottom_width, self.bottom_width))
        h = F.relu(self.bn1(self.dc1(h)))
        h = F.relu(self.bn2(self.dc2(h)))
        h = F.relu(self.bn3(self.dc3(h)))
        return F.sigmoid(self.dc4(h))


class Discriminator(chainer.Chain):
    def __init__(self, bottom_width=4, ch=512, wscale=0.02):
        w = chainer.initializers.Normal(wscale)
        super(Discriminator, self).__init__()
        with self.init_scope():
            self.c0_0 = L.Convolution2D(3, ch // 8, 3, 1, 1, initialW=w)
            self.c0_1 = L.Convolution2D(ch // 8, ch // 4, 4, 2, 1, initialW=w)
            self.c1_0 = L.Convolution2D(ch // 4, ch // 4, 3, 1, 1, initialW=w)
            self.c1_1 = L.Convolution2D(ch // 4, ch // 2, 4, 2, 1, initialW=w)
            self.c2_0 = L.Convolution2D(ch // 2, ch // 2, 3, 1, 1, initialW=w)
            self.c2_1 = L.Convolution2D(ch // 2, ch, 4, 2, 1, initialW=w)
            self.l4 = L.Linear(bottom_width * bottom_width * ch, 1, initialW=w)
            self.bn0_1 = L.BatchNormalization(ch // 4, use_gamma=False)
            self.bn1_0 = L.BatchNormalization(ch // 4, use_gamma=False)
            self.bn1_1 = L.BatchNormalization(ch // 2, use_gamma=False)
            self.bn2_0 = L.BatchNormalization(ch // 2, use_gamma=False)
            self.bn2_1 = L.BatchNormalization(ch, use_gamma=False)

    def forward(self, x):
        h = add_noise(chainer.as_variable(x))
        h = F.leaky_relu(add_noise(self.c0_0(h)))
        h = F.leaky_relu(add_noise(self.bn0_1(self.c0_1(h))))
        h = F.leaky_relu(add_noise(self.bn1_0(self.c1_0(h))))
        h = F.leaky_relu(add_noise(self.bn1_1(self.c1_1(h))))
        h = F.leaky_relu(add_noise(self.bn2_0(self.c2_0(h))))
        h = F.leaky_relu(add_noise(self.bn2_1(self.c2_1(h))))
        return self.l4(h)


class DCGAN(chainer.Chain):
    def __init__(self, n_hidden=100, bottom_width=4, ch=512):
        super(DCGAN, self).__init__()
        with self.init_scope():
            self.gen = Generator(n_hidden, bottom_width, ch)
            self.dis = Discriminator(bottom_width, ch)

    def loss_dis(self, y_fake, y_real):
        batchsize = len(y_fake)
        loss1 = F.sum(F.softplus(-y_real)) / batchsize
        loss2 = F.sum(F.softplus(y_fake)) / batchsize
        return loss1 + loss2

    def loss_gen(self, y_fake):
        batchsize = len(y_fake)
        return F.sum(F.softplus(-y_fake)) / batchsize

    def forward(self, x_real):
        batchsize = len(x_real)
        x_real = chainer.Variable(x_real) * 2 - 1
        y_real = self.dis(x_real)
        z = chainer.Variable(self.xp.asarray(self.gen.make_hidden(batchsize)))
        x_fake = self.gen(z)
        y_fake = self.dis(x_fake)
        loss_dis = self.loss_dis(y_fake, y_real)
        loss_gen = self.loss_gen(y_fake)
        return {"dis": loss_dis, "gen": loss_gen, "fake": x_fake}
