"""A language model in the manner of GPT-2 (Radford et al., 2019)."""

import math

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


class Conv1D(chainer.Link):
    """A linear layer over the last axis, with its weight as (in, out)."""

    def __init__(self, n_in, n_out):
        super(Conv1D, self).__init__()
        self.n_out = n_out
        with self.init_scope():
            self.W = chainer.Parameter(chainer.initializers.Normal(0.02), (n_in, n_out))
            self.b = chainer.Parameter(0, (n_out,))

    def forward(self, x):
        shape = x.shape[:-1] + (self.n_out,)
        h = F.matmul(F.reshape(x, (-1, x.shape[-1])), self.W)
        h, b = F.broadcast(h, self.b)
        return F.reshape(h + b, shape)


class Norm(chainer.Link):
    def __init__(self, size, eps=1e-5):
        super(Norm, self).__init__()
        self.eps = eps
        with self.init_scope():
            self.gamma = chainer.Parameter(1, (size,))
            self.beta = chainer.Parameter(0, (size,))

    def forward(self, x):
        mean = F.mean(x, axis=-1, keepdims=True)
        centred = x - F.broadcast_to(mean, x.shape)
        variance = F.mean(centred**2, axis=-1, keepdims=True)
        h = centred / F.broadcast_to(F.sqrt(variance + self.eps), x.shape)
        return F.bias(F.scale(h, self.gamma, axis=2), self.beta, axis=2)


class Attention(chainer.Chain):
    def __init__(self, size, n_head):
        super(Attention, self).__init__()
        self.n_head = n_head
        with self.init_scope():
            self.c_attn = Conv1D(size, 3 * size)
            self.c_proj = Conv1D(size, size)

    def split_heads(self, x):
        batch, length, size = x.shape
        return F.transpose(F.reshape(x, (batch, length, self.n_head, -1)), (0, 2, 1, 3))

    def merge_heads(self, x):
        x = F.transpose(x, (0, 2, 1, 3))
        *outer, n_head, head_size = x.shape
        return F.reshape(x, (*outer, n_head * head_size))

    def forward(self, x, past=None):
        q, k, v = F.split_axis(self.c_attn(x), 3, axis=2)
        q, k, v = self.split_heads(q), self.split_heads(k), self.split_heads(v)
        if past is not None:
            k = F.concat((past[0], k), axis=2)
            v = F.concat((past[1], v), axis=2)
        present = (k, v)
        w = F.matmul(q, k, transb=True) / math.sqrt(v.shape[-1])
        n_query, n_key = w.shape[2:]
        causal = self.xp.tril(self.xp.ones((n_key, n_key), dtype=bool))[n_key - n_query :]
        mask = self.xp.broadcast_to(causal, w.shape)
        w = F.where(mask, w, self.xp.full(w.shape, -1e4, dtype=w.dtype))
        h = F.matmul(F.softmax(w, axis=3), v)
        return self.c_proj(self.merge_heads(h)), present


class Block(chainer.Chain):
    def __init__(self, size, n_head):
        super(Block, self).__init__()
        with self.init_scope():
            self.ln_1 = Norm(size)
            self.attn = Attention(size, n_head)
            self.ln_2 = Norm(size)
            self.c_fc = Conv1D(size, 4 * size)
            self.c_proj = Conv1D(4 * size, size)

    def forward(self, x, past=None):
        h, present = self.attn(self.ln_1(x), past)
        x = x + h
        h = self.c_proj(F.relu(self.c_fc(self.ln_2(x))))
        return x + h, present


class GPT2(chainer.Chain):
    def __init__(self, n_vocab, n_ctx=1024, size=768, n_layer=12, n_head=12):
        super(GPT2, self).__init__()
        self.n_ctx = n_ctx
        with self.init_scope():
            self.wte = L.EmbedID(n_vocab, size, initialW=chainer.initializers.Normal(0.02))
            self.wpe = L.EmbedID(n_ctx, size, initialW=chainer.initializers.Normal(0.01))
            self.ln_f = Norm(size)
        self.names = []
        for i in range(n_layer):
            name = f"h{i}"
            self.add_link(name, Block(size, n_head))
            self.names.append(name)

    def forward(self, ids, pasts=None):
        batch, length = ids.shape
        start = 0 if pasts is None else pasts[0][0].shape[2]
        if start + length > self.n_ctx:
            raise ValueError(f"{start + length} words, at most {self.n_ctx}")
        places = self.xp.arange(start, start + length, dtype=np.int32)
        places = self.xp.broadcast_to(places, (batch, length))
        h = self.wte(ids) + self.wpe(places)
        presents = []
        for i, name in enumerate(self.names):
            h, present = self[name](h, None if pasts is None else pasts[i])
            presents.append(present)
        h = self.ln_f(h)
        logits = F.matmul(F.reshape(h, (batch * length, -1)), self.wte.W, transb=True)
        return F.reshape(logits, (batch, length, -1)), presents

    def loss(self, ids):
        logits, _ = self(ids[:, :-1])
        targets = ids[:, 1:]
        n_vocab = logits.shape[-1]
        return F.softmax_cross_entropy(logits.reshape(-1, n_vocab), targets.reshape(-1))

    def generate(self, ids, n_new=4):
        """Return ``ids`` with ``n_new`` words more, the likeliest ones."""
        with chainer.using_config("enable_backprop", False):
            logits, pasts = self(ids)
            while True:
                word = F.argmax(logits[:, -1], axis=1).array.astype(ids.dtype)
                ids = self.xp.concatenate((ids, word[:, None]), axis=1)
                n_new -= 1
                if n_new == 0:
                    break
                logits, pasts = self(word[:, None], pasts)
        return ids
