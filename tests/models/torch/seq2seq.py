"""Sequence to sequence learning with LSTMs and attention over the encoder's states."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS = 0, 1, 2


class Encoder(nn.Module):
    def __init__(self, vocabulary, embedding, hidden, layers=2, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=PAD)
        self.lstm = nn.LSTM(
            embedding, hidden, num_layers=layers, dropout=dropout, bidirectional=True
        )
        self.bridge_h = nn.Linear(2 * hidden, hidden)
        self.bridge_c = nn.Linear(2 * hidden, hidden)
        self.layers = layers
        self.hidden = hidden

    def _bridge(self, state, linear):
        batch = state.size(1)
        state = state.view(self.layers, 2, batch, self.hidden)
        forward, backward = state.unbind(dim=1)
        return torch.tanh(linear(torch.cat([forward, backward], dim=-1)))

    def forward(self, source):
        embedded = self.embedding(source).transpose(0, 1)
        outputs, (h, c) = self.lstm(embedded)
        state = self._bridge(h, self.bridge_h), self._bridge(c, self.bridge_c)
        return outputs.transpose(0, 1), state


class Attention(nn.Module):
    """Bilinear attention (Luong et al., 2015)."""

    def __init__(self, query_size, key_size):
        super().__init__()
        self.project = nn.Linear(query_size, key_size, bias=False)

    def forward(self, query, keys, mask):
        scores = torch.bmm(keys, self.project(query).unsqueeze(2)).squeeze(2)
        scores = scores.masked_fill(mask, -1e9)
        weights = F.softmax(scores, dim=1)
        context = torch.bmm(weights.unsqueeze(1), keys).squeeze(1)
        return context, weights


class Decoder(nn.Module):
    def __init__(self, vocabulary, embedding, hidden, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=PAD)
        self.lstm = nn.LSTM(embedding + 2 * hidden, hidden, num_layers=layers)
        self.attention = Attention(hidden, 2 * hidden)
        self.out = nn.Linear(hidden + 2 * hidden, vocabulary)

    def step(self, token, state, context, keys, mask):
        embedded = self.embedding(token)
        rnn_input = torch.cat((embedded, context), dim=1).unsqueeze(0)
        output, state = self.lstm(rnn_input, state)
        output = output.squeeze(0)
        context, weights = self.attention(output, keys, mask)
        logits = self.out(torch.cat((output, context), dim=1))
        return logits, state, context, weights


class Seq2Seq(nn.Module):
    def __init__(self, source_vocabulary, target_vocabulary, embedding=256, hidden=512):
        super().__init__()
        self.encoder = Encoder(source_vocabulary, embedding, hidden)
        self.decoder = Decoder(target_vocabulary, embedding, hidden)

    def start(self, source):
        keys, state = self.encoder(source)
        context = keys.new_zeros(keys.size(0), keys.size(2))
        return keys, state, context, source.eq(PAD)

    def forward(self, source, target, teacher_forcing=1.0):
        keys, state, context, mask = self.start(source)
        token = target[:, 0]
        logits = []
        for t in range(1, target.size(1)):
            step, state, context, _ = self.decoder.step(token, state, context, keys, mask)
            logits.append(step)
            teacher = random.random() < teacher_forcing
            token = target[:, t] if teacher else step.argmax(dim=1)
        return torch.stack(logits, dim=1)

    def loss(self, source, target):
        logits = self(source, target)
        return F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=PAD)

    def loss_of_columns(self, source, columns):
        """The loss of a target that comes as a list with the tokens of one step each."""
        keys, state, context, mask = self.start(source)
        total = 0.0
        for token, following in zip(columns[:-1], columns[1:], strict=True):
            logits, state, context, _ = self.decoder.step(token, state, context, keys, mask)
            total = total + F.cross_entropy(logits, following, ignore_index=PAD)
        return total / (len(columns) - 1)

    def greedy(self, source, max_length):
        """The likeliest token of each step, and the attention weights."""
        keys, state, context, mask = self.start(source)
        token = torch.full((source.size(0),), BOS, dtype=torch.long, device=source.device)
        tokens, alignments = [token], []
        while len(tokens) < max_length:
            logits, state, context, weights = self.decoder.step(token, state, context, keys, mask)
            token = logits.argmax(dim=1)
            tokens.append(token)
            alignments.append(weights)
        return torch.stack(tokens, dim=1), torch.stack(alignments, dim=1)

    def greedy_until_end(self, source, max_length=20):
        """As `greedy`, but it stops once every sentence has ended."""
        keys, state, context, mask = self.start(source)
        token = torch.full((source.size(0),), BOS, dtype=torch.long)
        ended = torch.zeros_like(token, dtype=torch.bool)
        tokens = []
        for _ in range(max_length):
            logits, state, context, _ = self.decoder.step(token, state, context, keys, mask)
            token = logits.argmax(dim=1).masked_fill(ended, PAD)
            tokens.append(token)
            ended = ended | (token == EOS)
            if ended.all():
                break
        return torch.stack(tokens, dim=1)
