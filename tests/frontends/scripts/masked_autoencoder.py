"""A masked autoencoder on random patches."""

from dataclasses import dataclass
import torch
from torch import nn


@dataclass
class Cfg:
    image: int = 32
    patch: int = 8
    width: int = 48
    depth: int = 2
    heads: int = 4
    dec_width: int = 32
    mask: float = 0.75


def patchify(x, p):
    b, c, h, w = x.shape
    x = x.reshape(b, c, h // p, p, w // p, p)
    return torch.einsum("bchpwq->bhwpqc", x).reshape(b, (h // p) * (w // p), p * p * c)


def sincos(n, d):
    pos = torch.arange(n, dtype=torch.float32)[:, None]
    freq = torch.exp(-torch.arange(0, d, 2).float() / d * 9.21)[None]
    out = torch.zeros(n, d)
    out[:, 0::2] = torch.sin(pos * freq)
    out[:, 1::2] = torch.cos(pos * freq)
    return out


class MAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        n = (cfg.image // cfg.patch) ** 2
        self.embed = nn.Conv2d(3, cfg.width, cfg.patch, cfg.patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, cfg.width))
        self.register_buffer("pos", sincos(n + 1, cfg.width)[None], persistent=False)
        layer = nn.TransformerEncoderLayer(
            cfg.width, cfg.heads, cfg.width * 2, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, cfg.depth, enable_nested_tensor=False)
        self.to_dec = nn.Linear(cfg.width, cfg.dec_width)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, cfg.dec_width))
        self.register_buffer("dec_pos", sincos(n + 1, cfg.dec_width)[None], persistent=False)
        dec = nn.TransformerEncoderLayer(
            cfg.dec_width, 2, cfg.dec_width * 2, dropout=0.0, batch_first=True
        )
        self.decoder = nn.TransformerEncoder(dec, 1)
        self.pred = nn.Linear(cfg.dec_width, cfg.patch**2 * 3)
        nn.init.normal_(self.cls, std=0.02)
        nn.init.normal_(self.mask_token, std=0.02)

    def random_masking(self, x):
        n, l, d = x.shape
        keep = int(l * (1 - self.cfg.mask))
        noise = torch.rand(n, l, device=x.device)
        shuffle = noise.argsort(dim=1)
        restore = shuffle.argsort(dim=1)
        ids = shuffle[:, :keep]
        kept = torch.gather(x, 1, ids.unsqueeze(-1).repeat(1, 1, d))
        mask = torch.ones(n, l, device=x.device)
        mask[:, :keep] = 0
        return kept, mask.gather(1, restore), restore

    def forward(self, imgs):
        x = self.embed(imgs).flatten(2).transpose(1, 2) + self.pos[:, 1:]
        x, mask, restore = self.random_masking(x)
        cls = (self.cls + self.pos[:, :1]).expand(x.shape[0], -1, -1)
        x = self.to_dec(self.encoder(torch.cat((cls, x), 1)))
        tokens = self.mask_token.repeat(x.shape[0], restore.shape[1] + 1 - x.shape[1], 1)
        y = torch.cat([x[:, 1:], tokens], dim=1)
        y = torch.gather(y, 1, restore[..., None].expand(-1, -1, y.shape[2]))
        y = torch.cat([x[:, :1], y], dim=1) + self.dec_pos
        pred = self.pred(self.decoder(y))[:, 1:]
        target = patchify(imgs, self.cfg.patch)
        target = (target - target.mean(-1, keepdim=True)) / (
            target.var(-1, keepdim=True) + 1e-6
        ) ** 0.5
        loss = ((pred - target) ** 2).mean(-1)
        return (loss * mask).sum() / mask.sum(), pred


def param_groups(model, decay):
    groups = {"decay": [], "no": []}
    for name, p in model.named_parameters():
        groups["no" if p.ndim == 1 or name.endswith("bias") else "decay"].append(p)
    return [
        {"params": groups["decay"], "weight_decay": decay},
        {"params": groups["no"], "weight_decay": 0.0},
    ]


def main():
    torch.manual_seed(1)
    cfg = Cfg()
    model = MAE(cfg)
    opt = torch.optim.AdamW(param_groups(model, 0.05), lr=1e-3, betas=(0.9, 0.95))
    data = torch.rand(20, 3, cfg.image, cfg.image)
    warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 4))
    for epoch in range(2):
        for batch in data.split(8):
            loss, pred = model(batch)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            warm.step()
        print(epoch, f"{loss.item():.3f}", tuple(pred.shape))


main()
