"""Skip-gram with negative sampling: vectors of words, and their nearest neighbours."""

import random
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

CORPUS = """
the king rules the land and the queen rules the court
the queen walks in the garden and the king walks in the hall
a man works the land and a woman works the court
the prince is the son of the king and the princess is the daughter of the queen
""" * 8


def preprocess(text, min_count=2):
    words = text.lower().split()
    counts = Counter(words)
    return [word for word in words if counts[word] > min_count]


def create_lookup_tables(words):
    word_counts = Counter(words)
    sorted_vocab = sorted(word_counts, key=word_counts.get, reverse=True)
    int_to_vocab = {ii: word for ii, word in enumerate(sorted_vocab)}
    vocab_to_int = {word: ii for ii, word in int_to_vocab.items()}
    return vocab_to_int, int_to_vocab


def get_target(words, idx, window_size=5):
    R = np.random.randint(1, window_size + 1)
    start = idx - R if (idx - R) > 0 else 0
    stop = idx + R
    return list(words[start:idx] + words[idx + 1 : stop + 1])


def get_batches(words, batch_size, window_size=5):
    n_batches = len(words) // batch_size
    words = words[: n_batches * batch_size]
    for idx in range(0, len(words), batch_size):
        x, y = [], []
        batch = words[idx : idx + batch_size]
        for ii in range(len(batch)):
            batch_x = batch[ii]
            batch_y = get_target(batch, ii, window_size)
            y.extend(batch_y)
            x.extend([batch_x] * len(batch_y))
        yield x, y


class SkipGramNeg(nn.Module):
    def __init__(self, n_vocab, n_embed, noise_dist=None):
        super().__init__()
        self.n_vocab = n_vocab
        self.n_embed = n_embed
        self.noise_dist = noise_dist
        self.in_embed = nn.Embedding(n_vocab, n_embed)
        self.out_embed = nn.Embedding(n_vocab, n_embed)
        self.in_embed.weight.data.uniform_(-1, 1)
        self.out_embed.weight.data.uniform_(-1, 1)

    def forward_input(self, input_words):
        return self.in_embed(input_words)

    def forward_output(self, output_words):
        return self.out_embed(output_words)

    def forward_noise(self, batch_size, n_samples):
        if self.noise_dist is None:
            noise_dist = torch.ones(self.n_vocab)
        else:
            noise_dist = self.noise_dist
        noise_words = torch.multinomial(noise_dist, batch_size * n_samples, replacement=True)
        device = "cuda" if self.out_embed.weight.is_cuda else "cpu"
        noise_words = noise_words.to(device)
        return self.out_embed(noise_words).view(batch_size, n_samples, self.n_embed)


class NegativeSamplingLoss(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, input_vectors, output_vectors, noise_vectors):
        batch_size, embed_size = input_vectors.shape
        input_vectors = input_vectors.view(batch_size, embed_size, 1)
        output_vectors = output_vectors.view(batch_size, 1, embed_size)
        out_loss = torch.bmm(output_vectors, input_vectors).sigmoid().log()
        out_loss = out_loss.squeeze()
        noise_loss = torch.bmm(noise_vectors.neg(), input_vectors).sigmoid().log()
        noise_loss = noise_loss.squeeze().sum(1)
        return -(out_loss + noise_loss).mean()


def cosine_similarity(embedding, valid_size=4, device="cpu"):
    embed_vectors = embedding.weight
    magnitudes = embed_vectors.pow(2).sum(dim=1).sqrt().unsqueeze(0)
    valid_examples = np.array(random.sample(range(8), valid_size))
    valid_examples = torch.LongTensor(valid_examples).to(device)
    valid_vectors = embedding(valid_examples)
    similarities = torch.mm(valid_vectors, embed_vectors.t()) / magnitudes
    return valid_examples, similarities


def main():
    words = preprocess(CORPUS)
    vocab_to_int, int_to_vocab = create_lookup_tables(words)
    int_words = [vocab_to_int[word] for word in words]
    threshold = 1e-1
    word_counts = Counter(int_words)
    total_count = len(int_words)
    freqs = {word: count / total_count for word, count in word_counts.items()}
    p_drop = {word: 1 - np.sqrt(threshold / freqs[word]) for word in word_counts}
    train_words = [word for word in int_words if random.random() < (1 - p_drop[word])]
    word_freqs = np.array(sorted(freqs.values(), reverse=True))
    unigram_dist = word_freqs / word_freqs.sum()
    noise_dist = torch.from_numpy(unigram_dist**0.75 / np.sum(unigram_dist**0.75))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = SkipGramNeg(len(vocab_to_int), 24, noise_dist=noise_dist).to(device)
    criterion = NegativeSamplingLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    print_every = 5
    steps = 0
    for e in range(2):
        for input_words, target_words in get_batches(train_words, 32):
            steps += 1
            inputs, targets = torch.LongTensor(input_words), torch.LongTensor(target_words)
            inputs, targets = inputs.to(device), targets.to(device)
            input_vectors = model.forward_input(inputs)
            output_vectors = model.forward_output(targets)
            noise_vectors = model.forward_noise(inputs.shape[0], 5)
            loss = criterion(input_vectors, output_vectors, noise_vectors)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if steps % print_every == 0:
                print("Epoch: {}/{} Loss: {}".format(e + 1, 2, loss.item()))
                valid_examples, valid_similarities = cosine_similarity(model.in_embed, device=device)
                _, closest_idxs = valid_similarities.topk(4)
                valid_examples, closest_idxs = valid_examples.to("cpu"), closest_idxs.to("cpu")
                for ii, valid_idx in enumerate(valid_examples):
                    closest_words = [int_to_vocab[idx.item()] for idx in closest_idxs[ii]][1:]
                    print(int_to_vocab[valid_idx.item()] + " | " + ", ".join(closest_words))
    embeddings = model.in_embed.weight.to("cpu").data.numpy()
    print(embeddings.shape)


if __name__ == "__main__":
    main()
