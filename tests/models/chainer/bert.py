"""BERT (Devlin et al., 2018) with the losses of its pretraining."""

import math

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


class BertConfig(object):
    def __init__(
        self,
        vocab_size,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
    ):
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.intermediate_size = intermediate_size
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size


def linear3d(linear, x):
    """Apply a linear layer to (batch, length, channels)."""
    batch, length, channels = x.shape
    y = linear(F.reshape(x, (batch * length, channels)))
    return F.reshape(y, (batch, length, -1))


def gelu(x):
    return 0.5 * x * (1.0 + F.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


class Embedding(chainer.Chain):
    def __init__(self, config):
        super(Embedding, self).__init__()
        initializer = chainer.initializers.Normal(0.02)
        size = config.hidden_size
        with self.init_scope():
            self.word = L.EmbedID(config.vocab_size, size, initialW=initializer)
            self.kind = L.EmbedID(config.type_vocab_size, size, initialW=initializer)
            self.position = L.EmbedID(config.max_position_embeddings, size, initialW=initializer)
            self.norm = L.LayerNormalization(size)

    def forward(self, ids, kinds=None):
        batch, length = ids.shape
        if kinds is None:
            kinds = self.xp.zeros_like(ids)
        places = self.xp.arange(length, dtype=np.int32)[None, :]
        h = self.word(ids) + self.kind(kinds)
        h += F.broadcast_to(self.position(places), h.shape)
        h = F.reshape(self.norm(F.reshape(h, (batch * length, -1))), h.shape)
        return F.dropout(h, 0.1)


class Attention(chainer.Chain):
    def __init__(self, config):
        super(Attention, self).__init__()
        size = config.hidden_size
        self.n_head = config.num_attention_heads
        self.head_size = size // self.n_head
        with self.init_scope():
            self.query = L.Linear(size, size)
            self.key = L.Linear(size, size)
            self.value = L.Linear(size, size)
            self.output = L.Linear(size, size)

    def split_heads(self, x):
        batch, length, _ = x.shape
        x = x.reshape(batch, length, self.n_head, self.head_size)
        return x.transpose(0, 2, 1, 3)

    def forward(self, x, bias):
        q = self.split_heads(linear3d(self.query, x))
        k = self.split_heads(linear3d(self.key, x))
        v = self.split_heads(linear3d(self.value, x))
        scores = F.matmul(q, k.transpose(0, 1, 3, 2)) / math.sqrt(self.head_size)
        scores = scores + F.broadcast_to(bias, scores.shape)
        p = F.dropout(F.softmax(scores, axis=-1), 0.1)
        h = F.matmul(p, v).transpose(0, 2, 1, 3)
        h = h.reshape(h.shape[:2] + (self.n_head * self.head_size,))
        return linear3d(self.output, h)


class Layer(chainer.Chain):
    def __init__(self, config):
        super(Layer, self).__init__()
        size = config.hidden_size
        with self.init_scope():
            self.attention = Attention(config)
            self.norm1 = L.LayerNormalization(size)
            self.intermediate = L.Linear(size, config.intermediate_size)
            self.output = L.Linear(config.intermediate_size, size)
            self.norm2 = L.LayerNormalization(size)

    def forward(self, x, bias):
        batch, length, size = x.shape
        h = x + F.dropout(self.attention(x, bias), 0.1)
        h = self.norm1(F.reshape(h, (batch * length, size)))
        y = self.output(gelu(self.intermediate(h)))
        h = self.norm2(h + F.dropout(y, 0.1))
        return F.reshape(h, (batch, length, size))


class Bert(chainer.Chain):
    def __init__(self, config):
        super(Bert, self).__init__()
        with self.init_scope():
            self.embedding = Embedding(config)
            self.layers = chainer.ChainList(
                *[Layer(config) for _ in range(config.num_hidden_layers)]
            )
            self.pooler = L.Linear(config.hidden_size, config.hidden_size)

    def forward(self, ids, mask=None, kinds=None):
        if mask is None:
            mask = self.xp.ones_like(ids)
        bias = (1.0 - mask[:, None, None, :].astype(np.float32)) * -10000.0
        h = self.embedding(ids, kinds)
        outputs = []
        for layer in self.layers:
            h = layer(h, bias)
            outputs.append(h)
        pooled = F.tanh(self.pooler(outputs[-1][:, 0]))
        return outputs[-1], pooled


class BertPretraining(chainer.Chain):
    def __init__(self, config):
        super(BertPretraining, self).__init__()
        with self.init_scope():
            self.bert = Bert(config)
            self.transform = L.Linear(config.hidden_size, config.hidden_size)
            self.norm = L.LayerNormalization(config.hidden_size)
            self.bias = chainer.Parameter(0, config.vocab_size)
            self.next = L.Linear(config.hidden_size, 2)

    def forward(self, ids, mask, kinds, places, labels, follows):
        h, pooled = self.bert(ids, mask, kinds)
        batch, length, size = h.shape
        flat = self.xp.arange(batch, dtype=np.int32)[:, None] * length + places
        h = F.embed_id(flat.reshape(-1), F.reshape(h, (batch * length, size)))
        h = self.norm(gelu(self.transform(h)))
        logits = F.linear(h, self.bert.embedding.word.W, self.bias)
        mlm_loss = F.softmax_cross_entropy(logits, labels.reshape(-1))
        next_loss = F.softmax_cross_entropy(self.next(pooled), follows)
        loss = mlm_loss + next_loss
        chainer.report({"loss": loss, "mlm": mlm_loss, "next": next_loss}, self)
        return loss


class BertTagger(chainer.Chain):
    """A label for each word: the four last layers' mean decides."""

    def __init__(self, config, n_label):
        super(BertTagger, self).__init__()
        with self.init_scope():
            self.bert = Bert(config)
            self.score = L.Linear(config.hidden_size, n_label)

    def forward(self, ids, mask, labels):
        h, _ = self.bert(ids, mask)
        y = linear3d(self.score, F.dropout(h, 0.1))
        y = F.transpose(y, (0, 2, 1))
        entropy = F.softmax_cross_entropy(y, labels, reduce="no")
        weight = mask.astype(entropy.dtype)
        return F.sum(entropy * weight) / weight.sum()
