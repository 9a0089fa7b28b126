"""An Image is Worth 16x16 Words (Dosovitskiy et al., 2020): the Vision Transformer."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F


def pair(value):
    return value if isinstance(value, tuple) else (value, value)


class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, dim):
        super().__init__()
        self.patch_size = pair(patch_size)
        self.projection = nn.Conv2d(
            channels, dim, kernel_size=self.patch_size, stride=self.patch_size
        )

    def forward(self, image):
        _, _, height, width = image.shape
        ph, pw = self.patch_size
        assert height % ph == 0, f"height {height} is no multiple of {ph}"
        assert width % pw == 0, f"width {width} is no multiple of {pw}"
        patches = self.projection(image)
        return patches.flatten(2).transpose(1, 2), (height // ph, width // pw)


class Attention(nn.Module):
    def __init__(self, dim, heads=8, qkv_bias=True, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.projection = nn.Linear(dim, dim)
        self.dropout = dropout

    def forward(self, x, fused=True):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if fused:
            p = self.dropout if self.training else 0.0
            x = F.scaled_dot_product_attention(q, k, v, dropout_p=p)
        else:
            weights = torch.einsum("bhid,bhjd->bhij", q * self.scale, k).softmax(dim=-1)
            x = torch.einsum("bhij,bhjd->bhid", weights, v)
        x = x.transpose(1, 2).reshape(B, N, C)
        return self.projection(x)


class DropPath(nn.Module):
    """Leaves the residual branch of some samples out (stochastic depth)."""

    def __init__(self, probability=0.0):
        super().__init__()
        self.probability = probability

    def forward(self, x):
        if self.probability == 0.0 or not self.training:
            return x
        keep = 1 - self.probability
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        mask = x.new_empty(shape).bernoulli_(keep)
        return x * mask / keep


class Block(nn.Module):
    def __init__(self, dim, heads, ratio=4.0, drop_path=0.0, norm_layer=nn.LayerNorm):
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = Attention(dim, heads)
        self.norm2 = norm_layer(dim)
        hidden = int(dim * ratio)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))
        self.drop_path = DropPath(drop_path) if drop_path > 0 else nn.Identity()
        self.layer_scale = nn.Parameter(1e-5 * torch.ones(dim))

    def forward(self, x, fused=True):
        x = x + self.drop_path(self.layer_scale * self.attn(self.norm1(x), fused=fused))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    def __init__(
        self,
        image_size=224,
        patch_size=16,
        classes=1000,
        dim=768,
        depth=12,
        heads=12,
        *,
        channels=3,
        drop_path=0.1,
        pool="cls",
        fused=True,
    ):
        super().__init__()
        if pool not in {"cls", "mean"}:
            raise ValueError(f"pool is {pool!r}, not 'cls' or 'mean'")
        self.patches = PatchEmbedding(patch_size, channels, dim)
        self.grid = tuple(i // p for i, p in zip(pair(image_size), pair(patch_size), strict=True))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + self.grid[0] * self.grid[1], dim))
        norm_layer = partial(nn.LayerNorm, eps=1e-6)
        rates = [rate.item() for rate in torch.linspace(0, drop_path, depth)]
        self.blocks = nn.ModuleList(
            [Block(dim, heads, drop_path=rate, norm_layer=norm_layer) for rate in rates]
        )
        self.norm = norm_layer(dim)
        self.head = nn.Linear(dim, classes) if classes > 0 else nn.Identity()
        self.pool = pool
        self.fused = fused
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def position_embedding(self, grid):
        """The learnt embedding, stretched where the image is not of the usual size."""
        if grid == self.grid:
            return self.pos_embed
        cls, rest = self.pos_embed[:, :1], self.pos_embed[:, 1:]
        dim = rest.shape[-1]
        rest = rest.reshape(1, *self.grid, dim).permute(0, 3, 1, 2)
        rest = F.interpolate(rest, size=grid, mode="bicubic", align_corners=False)
        rest = rest.permute(0, 2, 3, 1).reshape(1, -1, dim)
        return torch.cat((cls, rest), dim=1)

    def features(self, image):
        x, grid = self.patches(image)
        cls_tokens = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat((cls_tokens, x), dim=1)
        x = x + self.position_embedding(grid)
        for block in self.blocks:
            x = block(x, self.fused)
        return self.norm(x)

    def forward(self, image):
        x = self.features(image)
        x = x[:, 0] if self.pool == "cls" else x[:, 1:].mean(dim=1)
        return self.head(x)

    def loss(self, images, labels, smoothing=0.1):
        """Cross entropy against smoothed labels, and the accuracy."""
        logits = self(images)
        log_probabilities = F.log_softmax(logits, dim=-1)
        picked = log_probabilities.gather(dim=-1, index=labels.unsqueeze(-1))
        nll = -picked.squeeze(-1)
        uniform = -log_probabilities.mean(dim=-1)
        loss = (1 - smoothing) * nll + smoothing * uniform
        accuracy = (logits.argmax(-1) == labels).float().mean()
        return loss.mean(), accuracy
