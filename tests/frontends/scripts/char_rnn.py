"""A recurrent classifier of names by language: padded batches, packed sequences, and generation."""

import argparse
import string
import unicodedata

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

NAMES = {
    "Scottish": ["Ross", "Reid", "Murray", "Stewart", "Walker", "Smith"],
    "Polish": ["Adamczak", "Kowalski", "Nowak", "Sokolsky", "Wojewódzki"],
    "Greek": ["Antonopoulos", "Kouros", "Maneates", "Papadopulos"],
}
all_letters = string.ascii_letters + " .,;'"
PAD = 0


def unicodeToAscii(s):
    return "".join(
        c for c in unicodedata.normalize("NFD", s) if unicodedata.category(c) != "Mn" and c in all_letters
    )


class Vocabulary:
    def __init__(self, letters):
        self.itos = ["<pad>"] + list(letters) + ["<eos>"]
        self.stoi = {letter: i for i, letter in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def encode(self, text):
        return [self.stoi[c] for c in text] + [self.stoi["<eos>"]]


class NamesDataset(Dataset):
    def __init__(self, names, vocab):
        self.languages = sorted(names)
        self.items = []
        for label, language in enumerate(self.languages):
            for name in names[language]:
                self.items.append((torch.tensor(vocab.encode(unicodeToAscii(name))), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    sequences, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in sequences])
    padded = pad_sequence(sequences, batch_first=True, padding_value=PAD)
    return padded, lengths, torch.tensor(labels)


class NameClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, hidden_dim, num_classes, num_layers=2, dropout=0.2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim, padding_idx=PAD)
        self.rnn = nn.LSTM(
            embed_dim, hidden_dim, num_layers, batch_first=True, bidirectional=True, dropout=dropout
        )
        self.attention = nn.Linear(2 * hidden_dim, 1)
        self.fc = nn.Linear(4 * hidden_dim, num_classes)

    def forward(self, x, lengths):
        embedded = self.embedding(x)
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed_output, (h_n, c_n) = self.rnn(packed)
        output, _ = pad_packed_sequence(packed_output, batch_first=True, total_length=x.size(1))
        mask = x.eq(PAD)
        scores = self.attention(output).squeeze(-1).masked_fill(mask, float("-inf"))
        weights = F.softmax(scores, dim=1)
        pooled = torch.bmm(weights.unsqueeze(1), output).squeeze(1)
        last = torch.cat((h_n[-2], h_n[-1]), dim=1)
        return self.fc(torch.cat((pooled, last), dim=1))


class CharRNN(nn.Module):
    def __init__(self, vocab_size, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.embedding = nn.Embedding(vocab_size, hidden_dim, padding_idx=PAD)
        self.rnn = nn.GRU(hidden_dim, hidden_dim, batch_first=True)
        self.decoder = nn.Linear(hidden_dim, vocab_size)

    def forward(self, x, hidden=None):
        if hidden is None:
            hidden = self.init_hidden(x.size(0))
        out, hidden = self.rnn(self.embedding(x), hidden)
        return self.decoder(out), hidden

    def init_hidden(self, batch_size):
        weight = next(self.parameters())
        return weight.new_zeros(1, batch_size, self.hidden_dim)


def sample(model, vocab, start="A", max_length=12, temperature=0.8):
    model.eval()
    chars = [start]
    hidden = model.init_hidden(1)
    x = torch.tensor([[vocab.stoi[start]]])
    with torch.no_grad():
        for _ in range(max_length):
            logits, hidden = model(x, hidden)
            weights = logits[0, -1].div(temperature).exp()
            weights[PAD] = 0
            index = torch.multinomial(weights, 1)
            letter = vocab.itos[index.item()]
            if letter == "<eos>":
                break
            chars.append(letter)
            x = index.view(1, 1)
    return "".join(chars)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--clip", type=float, default=5.0)
    args = parser.parse_args()
    vocab = Vocabulary(all_letters)
    dataset = NamesDataset(NAMES, vocab)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate)
    classifier = NameClassifier(len(vocab), 12, args.hidden, len(dataset.languages))
    generator = CharRNN(len(vocab), args.hidden)
    params = list(classifier.parameters()) + list(generator.parameters())
    optimizer = torch.optim.Adam(params, lr=0.005)
    ce = nn.CrossEntropyLoss(ignore_index=PAD)
    for epoch in range(args.epochs):
        classifier.train()
        generator.train()
        hits, seen = 0, 0
        for padded, lengths, labels in loader:
            optimizer.zero_grad()
            scores = classifier(padded, lengths)
            loss = F.cross_entropy(scores, labels)
            logits, _ = generator(padded[:, :-1])
            loss = loss + ce(logits.transpose(1, 2), padded[:, 1:])
            loss.backward()
            nn.utils.clip_grad_norm_(params, args.clip)
            optimizer.step()
            hits += (scores.argmax(1) == labels).sum().item()
            seen += labels.size(0)
        print(f"epoch {epoch}: accuracy {hits / seen:.2f}")
    print([sample(generator, vocab, start) for start in "ABC"])


if __name__ == "__main__":
    main()
