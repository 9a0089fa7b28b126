"""A speech recogniser: VGG-like convolutions, LSTMs with projections, and an attention decoder."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


class VGG2L(chainer.Chain):
    """Four convolutions, each pair followed by a pooling that halves time and frequency."""

    def __init__(self, in_channel=1, width=64):
        super(VGG2L, self).__init__()
        with self.init_scope():
            self.conv1_1 = L.Convolution2D(in_channel, width, 3, stride=1, pad=1)
            self.conv1_2 = L.Convolution2D(width, width, 3, stride=1, pad=1)
            self.conv2_1 = L.Convolution2D(width, 2 * width, 3, stride=1, pad=1)
            self.conv2_2 = L.Convolution2D(2 * width, 2 * width, 3, stride=1, pad=1)
        self.in_channel = in_channel

    def forward(self, xs):
        ilens = np.array([x.shape[0] for x in xs], dtype=np.int32)
        xs = F.pad_sequence(xs)
        batch, length, dim = xs.shape
        xs = F.swapaxes(
            F.reshape(xs, (batch, length, self.in_channel, dim // self.in_channel)), 1, 2
        )
        xs = F.relu(self.conv1_1(xs))
        xs = F.relu(self.conv1_2(xs))
        xs = F.max_pooling_2d(xs, 2, stride=2)
        xs = F.relu(self.conv2_1(xs))
        xs = F.relu(self.conv2_2(xs))
        xs = F.max_pooling_2d(xs, 2, stride=2)

        ilens = (ilens + 1) // 2
        ilens = (ilens + 1) // 2
        xs = F.swapaxes(xs, 1, 2)
        xs = F.reshape(xs, (xs.shape[0], xs.shape[1], xs.shape[2] * xs.shape[3]))
        return [x[:n] for x, n in zip(xs, ilens.tolist())]


class BLSTMP(chainer.Chain):
    """Bidirectional LSTMs; a projection and a subsampling follow each layer."""

    def __init__(self, idim, n_layer, cdim, hdim, subsample):
        super(BLSTMP, self).__init__()
        with self.init_scope():
            for i in range(n_layer):
                inputdim = idim if i == 0 else hdim
                setattr(self, "bilstm%d" % i, L.NStepBiLSTM(1, inputdim, cdim, 0))
                setattr(self, "bt%d" % i, L.Linear(2 * cdim, hdim))
        self.n_layer = n_layer
        self.cdim = cdim
        self.subsample = subsample

    def forward(self, xs):
        for layer in range(self.n_layer):
            _, _, ys = self["bilstm" + str(layer)](None, None, xs)
            sub = self.subsample[layer]
            if sub > 1:
                ys = [y[::sub] for y in ys]
            ilens = [y.shape[0] for y in ys]
            ys = self["bt" + str(layer)](F.vstack(ys))
            xs = F.split_axis(ys, np.cumsum(ilens[:-1]), axis=0)
            xs = [F.tanh(x) for x in xs]
        return xs


class Encoder(chainer.Chain):
    def __init__(self, idim, width, n_layer, cdim, hdim, subsample):
        super(Encoder, self).__init__()
        with self.init_scope():
            self.enc1 = VGG2L(1, width)
            halved = (idim + 1) // 2
            quartered = (halved + 1) // 2
            self.enc2 = BLSTMP(2 * width * quartered, n_layer, cdim, hdim, subsample)

    def forward(self, xs):
        hs = self.enc1(xs)
        return self.enc2(hs)


class AttLoc(chainer.Chain):
    """Attention that sees where it looked before (Chorowski et al., 2015)."""

    def __init__(self, eprojs, dunits, att_dim, n_channel, width):
        super(AttLoc, self).__init__()
        with self.init_scope():
            self.mlp_enc = L.Linear(eprojs, att_dim)
            self.mlp_dec = L.Linear(dunits, att_dim, nobias=True)
            self.mlp_att = L.Linear(n_channel, att_dim, nobias=True)
            self.loc_conv = L.Convolution2D(1, n_channel, (1, 2 * width + 1), pad=(0, width))
            self.gvec = L.Linear(att_dim, 1)
        self.dunits = dunits
        self.eprojs = eprojs
        self.att_dim = att_dim
        self.reset()

    def reset(self):
        self.enc_h = None
        self.mask = None
        self.pre_compute_enc_h = None

    def forward(self, enc_hs, dec_z, att_prev, scaling=2.0):
        batch = len(enc_hs)
        if self.pre_compute_enc_h is None:
            self.enc_h = F.pad_sequence(enc_hs)
            self.h_length = self.enc_h.shape[1]
            self.pre_compute_enc_h = self.mlp_enc(self.enc_h, n_batch_axes=2)
            self.mask = F.pad_sequence(
                [self.xp.zeros(len(h), dtype=np.float32) for h in enc_hs], padding=-1e4
            )
        if dec_z is None:
            dec_z = chainer.Variable(self.xp.zeros((batch, self.dunits), dtype=np.float32))
        else:
            dec_z = dec_z.reshape(batch, self.dunits)

        if att_prev is None:
            att_prev = [
                self.xp.full(h.shape[0], 1.0 / h.shape[0], dtype=np.float32) for h in enc_hs
            ]
            att_prev = [chainer.Variable(att) for att in att_prev]
            att_prev = F.pad_sequence(att_prev)

        att_conv = self.loc_conv(att_prev.reshape(batch, 1, 1, self.h_length))
        att_conv = F.swapaxes(F.squeeze(att_conv, axis=2), 1, 2)
        att_conv = self.mlp_att(att_conv, n_batch_axes=2)

        dec_z_tiled = F.broadcast_to(
            F.expand_dims(self.mlp_dec(dec_z), 1), self.pre_compute_enc_h.shape
        )
        e = F.tanh(att_conv + self.pre_compute_enc_h + dec_z_tiled)
        e = F.squeeze(self.gvec(e, n_batch_axes=2), axis=2)
        w = F.softmax(scaling * (e + self.mask))
        c = F.sum(self.enc_h * F.broadcast_to(F.expand_dims(w, 2), self.enc_h.shape), axis=1)
        return c, w


class Decoder(chainer.Chain):
    def __init__(self, eprojs, odim, dunits, att):
        super(Decoder, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(odim, dunits, ignore_label=-1)
            self.lstm0 = L.StatelessLSTM(dunits + eprojs, dunits)
            self.lstm1 = L.StatelessLSTM(dunits, dunits)
            self.output = L.Linear(dunits, odim)
            self.att = att
        self.sos = odim - 1
        self.eos = odim - 1

    def forward(self, hs, ys):
        self.att.reset()
        eos = self.xp.array([self.eos], "i")
        sos = self.xp.array([self.sos], "i")
        ys_in = [F.concat([sos, y], axis=0) for y in ys]
        ys_out = [F.concat([y, eos], axis=0) for y in ys]
        pad_ys_in = F.pad_sequence(ys_in, padding=self.eos)
        pad_ys_out = F.pad_sequence(ys_out, padding=-1)
        batch, olength = pad_ys_out.shape

        c_list = [None, None]
        z_list = [None, None]
        att_w = None
        z_all = []
        eys = F.separate(self.embed(pad_ys_in), axis=1)
        for i in range(olength):
            att_c, att_w = self.att(hs, z_list[0], att_w)
            ey = F.hstack((eys[i], att_c))
            c_list[0], z_list[0] = self.lstm0(c_list[0], z_list[0], ey)
            c_list[1], z_list[1] = self.lstm1(c_list[1], z_list[1], z_list[0])
            z_all.append(z_list[-1])
        z_all = F.reshape(F.stack(z_all, axis=1), (batch * olength, -1))
        y_all = self.output(z_all)
        loss = F.softmax_cross_entropy(y_all, F.flatten(pad_ys_out), ignore_label=-1)
        accuracy = F.accuracy(y_all, F.flatten(pad_ys_out), ignore_label=-1)
        return loss, accuracy


class E2E(chainer.Chain):
    def __init__(self, idim, odim, width=64, n_layer=2, cdim=320, hdim=320, dunits=300):
        super(E2E, self).__init__()
        subsample = np.ones(n_layer, dtype=np.int64)
        subsample[0] = 2
        with self.init_scope():
            self.enc = Encoder(idim, width, n_layer, cdim, hdim, subsample)
            self.att = AttLoc(hdim, dunits, att_dim=hdim, n_channel=10, width=5)
            self.dec = Decoder(hdim, odim, dunits, self.att)

    def forward(self, xs, ys):
        hs = self.enc(xs)
        loss, accuracy = self.dec(hs, ys)
        chainer.report({"loss": loss, "acc": accuracy}, self)
        return loss
