"""A Vision Transformer (Dosovitskiy et al., 2020)."""

import math

import chainer
import chainer.functions as F
import chainer.links as L


class LayerNorm(chainer.Chain):
    """Layer normalization over the last axis of an array of any rank."""

    def __init__(self, size):
        super(LayerNorm, self).__init__()
        with self.init_scope():
            self.norm = L.LayerNormalization(size, eps=1e-6)

    def forward(self, x):
        shape = x.shape
        h = F.reshape(x, (-1, shape[-1]))
        return F.reshape(self.norm(h), shape)


class SelfAttention(chainer.Chain):
    def __init__(self, dim, n_head, dropout=0.1):
        super(SelfAttention, self).__init__()
        self.n_head = n_head
        self.scale = 1 / math.sqrt(dim // n_head)
        self.dropout = dropout
        with self.init_scope():
            self.qkv = L.Linear(dim, 3 * dim, nobias=True)
            self.out = L.Linear(dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        qkv = self.qkv(x, n_batch_axes=2)
        qkv = F.reshape(qkv, (batch, length, 3, self.n_head, dim // self.n_head))
        q, k, v = F.separate(F.transpose(qkv, (2, 0, 3, 1, 4)), axis=0)
        attention = F.softmax(F.matmul(q, k, transb=True) * self.scale, axis=3)
        attention = F.dropout(attention, self.dropout)
        h = F.matmul(attention, v)
        h = F.reshape(F.swapaxes(h, 1, 2), (batch, length, dim))
        return self.out(h, n_batch_axes=2)


class MLP(chainer.Chain):
    def __init__(self, dim, n_hidden, dropout=0.1):
        super(MLP, self).__init__()
        self.dropout = dropout
        with self.init_scope():
            self.fc1 = L.Linear(dim, n_hidden)
            self.fc2 = L.Linear(n_hidden, dim)

    def forward(self, x):
        h = self.fc1(x, n_batch_axes=2)
        h = 0.5 * h * (1 + F.erf(h / math.sqrt(2)))
        return F.dropout(self.fc2(h, n_batch_axes=2), self.dropout)


class EncoderLayer(chainer.Chain):
    def __init__(self, dim, n_head, n_hidden):
        super(EncoderLayer, self).__init__()
        with self.init_scope():
            self.norm1 = LayerNorm(dim)
            self.attention = SelfAttention(dim, n_head)
            self.norm2 = LayerNorm(dim)
            self.mlp = MLP(dim, n_hidden)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(chainer.Chain):
    def __init__(self, size, patch, dim, depth, n_head, n_class, n_channel=3):
        super(ViT, self).__init__()
        self.grid = size // patch
        with self.init_scope():
            self.patches = L.Convolution2D(n_channel, dim, patch, stride=patch)
            self.token = chainer.Parameter(chainer.initializers.Zero(), (1, 1, dim))
            self.position = chainer.Parameter(
                chainer.initializers.Normal(0.02), (1, 1 + self.grid**2, dim)
            )
            self.layers = chainer.Sequential(
                EncoderLayer(dim, n_head, 4 * dim),
            ).repeat(depth)
            self.norm = LayerNorm(dim)
            self.head = L.Linear(dim, n_class)

    def embed_position(self, height, width):
        """Return the positions' embedding, resized to a grid of another size."""
        if (height, width) == (self.grid, self.grid):
            return self.position
        token, places = F.split_axis(self.position, [1], axis=1)
        dim = places.shape[2]
        places = F.reshape(F.transpose(places, (0, 2, 1)), (1, dim, self.grid, self.grid))
        places = F.resize_images(places, (height, width))
        places = F.transpose(F.reshape(places, (1, dim, height * width)), (0, 2, 1))
        return F.concat((token, places), axis=1)

    def forward(self, x):
        h = self.patches(x)
        batch, dim, height, width = h.shape
        h = F.transpose(F.reshape(h, (batch, dim, height * width)), (0, 2, 1))
        token = F.broadcast_to(self.token, (batch, 1, dim))
        h = F.concat((token, h), axis=1)
        position = self.embed_position(height, width)
        h = F.dropout(h + F.broadcast_to(position, h.shape), 0.1)
        h = self.norm(self.layers(h))
        return self.head(h[:, 0])
