"""A language model of LSTMs that keep their state, trained on columns of words."""

import chainer
import chainer.functions as F
import chainer.links as L


class RNNForLM(chainer.Chain):
    def __init__(self, n_vocab, n_units):
        super(RNNForLM, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units, ignore_label=-1)
            self.l1 = L.LSTM(n_units, n_units)
            self.l2 = L.LSTM(n_units, n_units)
            self.l3 = L.Linear(n_units, n_vocab)

        for param in self.params():
            if param.array is not None:
                param.array[...] = self.xp.random.uniform(-0.1, 0.1, param.shape)

    def reset_state(self):
        self.l1.reset_state()
        self.l2.reset_state()

    def forward(self, x):
        h0 = self.embed(x)
        h1 = self.l1(F.dropout(h0))
        h2 = self.l2(F.dropout(h1))
        y = self.l3(F.dropout(h2))
        return y


class Trainer(chainer.Chain):
    """The loss over a window of words; the state outlives a window, its history does not."""

    def __init__(self, n_vocab, n_units, bprop_len=3):
        super(Trainer, self).__init__()
        self.bprop_len = bprop_len
        with self.init_scope():
            self.rnn = RNNForLM(n_vocab, n_units)

    def forward(self, words):
        self.rnn.reset_state()
        loss = 0
        count = 0
        ys = []
        for i in range(words.shape[1] - 1):
            y = self.rnn(words[:, i])
            t = words[:, i + 1]
            loss += F.softmax_cross_entropy(y, t)
            count += 1
            ys.append(y)
            if count % self.bprop_len == 0:
                loss.unchain_backward()
        logits = F.stack(ys, axis=1)
        best = F.argmax(logits, axis=2)
        accuracy = F.mean(F.cast(best.array == words[:, 1:], "float32"))
        chainer.report({"perp": F.exp(loss / count).array, "accuracy": accuracy}, self)
        return loss / count, logits
