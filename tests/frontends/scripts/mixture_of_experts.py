"""A sparse mixture of experts with top-k routing and a loss that balances the load."""

from typing import Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


class Expert(nn.Module):
    def __init__(self, n_embd: int, dropout: float = 0.1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(dropout)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class NoisyTopkRouter(nn.Module):
    def __init__(self, n_embed: int, num_experts: int, top_k: int):
        super().__init__()
        self.top_k = top_k
        self.topkroute_linear = nn.Linear(n_embed, num_experts)
        self.noise_linear = nn.Linear(n_embed, num_experts)

    def forward(self, mh_output: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        logits = self.topkroute_linear(mh_output)
        if self.training:
            noise_logits = self.noise_linear(mh_output)
            logits = logits + torch.randn_like(logits) * F.softplus(noise_logits)
        top_k_logits, indices = logits.topk(self.top_k, dim=-1)
        zeros = torch.full_like(logits, float("-inf"))
        sparse_logits = zeros.scatter(-1, indices, top_k_logits)
        return F.softmax(sparse_logits, dim=-1), indices, logits


class SparseMoE(nn.Module):
    def __init__(self, n_embed: int, num_experts: int, top_k: int):
        super().__init__()
        self.router = NoisyTopkRouter(n_embed, num_experts, top_k)
        self.experts = nn.ModuleList([Expert(n_embed) for _ in range(num_experts)])
        self.top_k = top_k
        self.num_experts = num_experts
        self.aux_loss = torch.tensor(0.0)

    def forward(self, x: Tensor) -> Tensor:
        gating_output, indices, logits = self.router(x)
        final_output = torch.zeros_like(x)
        flat_x = x.view(-1, x.size(-1))
        flat_gating_output = gating_output.view(-1, gating_output.size(-1))
        for i, expert in enumerate(self.experts):
            expert_mask = (indices == i).any(dim=-1)
            flat_mask = expert_mask.view(-1)
            if flat_mask.any():
                expert_input = flat_x[flat_mask]
                expert_output = expert(expert_input)
                gating_scores = flat_gating_output[flat_mask, i].unsqueeze(1)
                weighted_output = expert_output * gating_scores
                final_output[expert_mask] += weighted_output.squeeze(1)
        self.aux_loss = self.load_balance(logits, indices)
        return final_output

    def load_balance(self, logits: Tensor, indices: Tensor) -> Tensor:
        probs = F.softmax(logits, dim=-1).mean(dim=(0, 1))
        counts = F.one_hot(indices, self.num_experts).float().sum(dim=2).mean(dim=(0, 1))
        return self.num_experts * torch.sum(probs * counts / self.top_k)


class Head(nn.Module):
    def __init__(self, n_embed: int, head_size: int, block_size: int):
        super().__init__()
        self.key = nn.Linear(n_embed, head_size, bias=False)
        self.query = nn.Linear(n_embed, head_size, bias=False)
        self.value = nn.Linear(n_embed, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        k, q, v = self.key(x), self.query(x), self.value(x)
        wei = q @ k.transpose(-2, -1) * C**-0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(wei, dim=-1) @ v


class MultiHead(nn.Module):
    def __init__(self, n_embed: int, num_heads: int, block_size: int):
        super().__init__()
        head_size = n_embed // num_heads
        self.heads = nn.ModuleList([Head(n_embed, head_size, block_size) for _ in range(num_heads)])
        self.proj = nn.Linear(n_embed, n_embed)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class Block(nn.Module):
    def __init__(self, n_embed: int, n_head: int, block_size: int, num_experts: int, top_k: int):
        super().__init__()
        self.sa = MultiHead(n_embed, n_head, block_size)
        self.smoe = SparseMoE(n_embed, num_experts, top_k)
        self.ln1 = nn.LayerNorm(n_embed)
        self.ln2 = nn.LayerNorm(n_embed)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.sa(self.ln1(x))
        return x + self.smoe(self.ln2(x))


class SparseMoELanguageModel(nn.Module):
    def __init__(self, vocab_size: int, n_embed=32, n_head=4, n_layer=2, block_size=16, num_experts=4, top_k=2):
        super().__init__()
        self.block_size = block_size
        self.token_embedding_table = nn.Embedding(vocab_size, n_embed)
        self.position_embedding_table = nn.Embedding(block_size, n_embed)
        self.blocks = nn.Sequential(
            *[Block(n_embed, n_head, block_size, num_experts, top_k) for _ in range(n_layer)]
        )
        self.ln_f = nn.LayerNorm(n_embed)
        self.lm_head = nn.Linear(n_embed, vocab_size)
        self.apply(kaiming_init_weights)

    def forward(self, idx: Tensor, targets: Tensor | None = None):
        B, T = idx.shape
        x = self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(T, device=idx.device))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        if targets is None:
            return logits, None
        B, T, C = logits.shape
        loss = F.cross_entropy(logits.view(B * T, C), targets.view(B * T))
        aux = sum(block.smoe.aux_loss for block in self.blocks)
        return logits, loss + 0.01 * aux


def kaiming_init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_normal_(m.weight)


def get_batch(data: Tensor, batch_size: int, block_size: int) -> Tuple[Tensor, Tensor]:
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + block_size + 1] for i in ix])
    return x, y


def main():
    torch.manual_seed(1337)
    text = "it was the best of times, it was the worst of times " * 20
    chars = sorted(set(text))
    encode = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([encode[c] for c in text], dtype=torch.long)
    model = SparseMoELanguageModel(len(chars))
    print(sum(p.numel() for p in model.parameters()) / 1e6, "M parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for it in range(10):
        xb, yb = get_batch(data, 4, model.block_size)
        logits, loss = model(xb, yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if it % 5 == 0:
            print(f"step {it}: loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        context = torch.zeros((1, 1), dtype=torch.long)
        for _ in range(10):
            logits, _ = model(context[:, -model.block_size :])
            probs = F.softmax(logits[:, -1, :], dim=-1)
            context = torch.cat((context, torch.multinomial(probs, num_samples=1)), dim=1)
    print("".join(chars[i] for i in context[0].tolist()))


if __name__ == "__main__":
    main()
