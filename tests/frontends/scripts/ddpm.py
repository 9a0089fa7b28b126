"""Denoising diffusion on small pictures: a U-Net that predicts the noise, and the sampler."""

import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Pictures of squares at random places."""

    def __init__(self, count, size):
        self.count = count
        self.size = size

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        x = torch.full((1, self.size, self.size), -1.0)
        r = torch.randint(2, self.size // 2, (1,), generator=g).item()
        top, left = torch.randint(0, self.size - r, (2,), generator=g).tolist()
        x[:, top : top + r, left : left + r] = 1.0
        return x, r


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(torch.arange(half, device=t.device) * -(math.log(10000) / (half - 1)))
        args = t[:, None].float() * freqs[None, :]
        return torch.cat([args.sin(), args.cos()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, in_ch, out_ch, time_dim, groups=8):
        super().__init__()
        self.block1 = nn.Sequential(nn.GroupNorm(groups, in_ch), nn.SiLU(), nn.Conv2d(in_ch, out_ch, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, out_ch))
        self.block2 = nn.Sequential(nn.GroupNorm(groups, out_ch), nn.SiLU(), nn.Conv2d(out_ch, out_ch, 3, padding=1))
        self.skip = nn.Conv2d(in_ch, out_ch, 1) if in_ch != out_ch else nn.Identity()

    def forward(self, x, t):
        h = self.block1(x)
        h = h + self.time(t)[:, :, None, None]
        h = self.block2(h)
        return h + self.skip(x)


class Attention(nn.Module):
    def __init__(self, ch, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, ch)
        self.qkv = nn.Conv2d(ch, ch * 3, 1)
        self.out = nn.Conv2d(ch, ch, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).unbind(1)
        attn = torch.einsum("bhdi,bhdj->bhij", q, k) * (c // self.heads) ** -0.5
        out = torch.einsum("bhij,bhdj->bhdi", attn.softmax(dim=-1), v)
        return x + self.out(out.reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, ch=16, mults=(1, 2, 4), in_ch=1):
        super().__init__()
        time_dim = ch * 4
        self.time_mlp = nn.Sequential(
            SinusoidalPosEmb(ch), nn.Linear(ch, time_dim), nn.SiLU(), nn.Linear(time_dim, time_dim)
        )
        self.stem = nn.Conv2d(in_ch, ch, 3, padding=1)
        dims = [ch, *[ch * m for m in mults]]
        self.downs = nn.ModuleList()
        for i, (d_in, d_out) in enumerate(zip(dims[:-1], dims[1:])):
            last = i == len(mults) - 1
            self.downs.append(
                nn.ModuleList(
                    [
                        ResBlock(d_in, d_out, time_dim),
                        Attention(d_out) if last else nn.Identity(),
                        nn.Identity() if last else nn.Conv2d(d_out, d_out, 4, 2, 1),
                    ]
                )
            )
        self.mid = ResBlock(dims[-1], dims[-1], time_dim)
        self.ups = nn.ModuleList()
        for i, (d_in, d_out) in enumerate(reversed(list(zip(dims[:-1], dims[1:])))):
            last = i == len(mults) - 1
            self.ups.append(
                nn.ModuleList(
                    [
                        ResBlock(d_out * 2, d_in, time_dim),
                        nn.Identity() if last else nn.ConvTranspose2d(d_in, d_in, 4, 2, 1),
                    ]
                )
            )
        self.head = nn.Conv2d(ch, in_ch, 1)

    def forward(self, x, time):
        t = self.time_mlp(time)
        x = self.stem(x)
        skips = []
        for res, attn, down in self.downs:
            x = attn(res(x, t))
            skips.append(x)
            x = down(x)
        x = self.mid(x, t)
        for res, up in self.ups:
            x = torch.cat((x, skips.pop()), dim=1)
            x = up(res(x, t))
        return self.head(x)


def cosine_schedule(timesteps, s=0.008):
    x = torch.linspace(0, timesteps, timesteps + 1)
    alphas = torch.cos(((x / timesteps) + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas = alphas / alphas[0]
    betas = 1 - (alphas[1:] / alphas[:-1])
    return torch.clip(betas, 0.0001, 0.9999)


def extract(a, t, x_shape):
    out = a.gather(-1, t)
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))


class Diffusion(nn.Module):
    def __init__(self, model, timesteps):
        super().__init__()
        self.model = model
        self.timesteps = timesteps
        betas = cosine_schedule(timesteps)
        alphas = 1.0 - betas
        cumprod = torch.cumprod(alphas, dim=0)
        prev = F.pad(cumprod[:-1], (1, 0), value=1.0)
        self.register_buffer("betas", betas)
        self.register_buffer("sqrt_recip_alphas", torch.sqrt(1.0 / alphas))
        self.register_buffer("sqrt_cumprod", torch.sqrt(cumprod))
        self.register_buffer("sqrt_one_minus", torch.sqrt(1.0 - cumprod))
        self.register_buffer("posterior_variance", betas * (1.0 - prev) / (1.0 - cumprod))

    def q_sample(self, x0, t, noise):
        return extract(self.sqrt_cumprod, t, x0.shape) * x0 + extract(self.sqrt_one_minus, t, x0.shape) * noise

    def forward(self, x0):
        t = torch.randint(0, self.timesteps, (x0.shape[0],), device=x0.device).long()
        noise = torch.randn_like(x0)
        predicted = self.model(self.q_sample(x0, t, noise), t)
        return F.smooth_l1_loss(predicted, noise)

    @torch.no_grad()
    def p_sample(self, x, t, index):
        beta = extract(self.betas, t, x.shape)
        mean = extract(self.sqrt_recip_alphas, t, x.shape) * (
            x - beta * self.model(x, t) / extract(self.sqrt_one_minus, t, x.shape)
        )
        if index == 0:
            return mean
        variance = extract(self.posterior_variance, t, x.shape)
        return mean + torch.sqrt(variance) * torch.randn_like(x)

    @torch.no_grad()
    def sample(self, shape):
        device = next(self.model.parameters()).device
        img = torch.randn(shape, device=device)
        imgs = []
        for i in reversed(range(0, self.timesteps)):
            img = self.p_sample(img, torch.full((shape[0],), i, device=device, dtype=torch.long), i)
            imgs.append(img.cpu())
        return imgs


class EMA:
    def __init__(self, model, decay=0.995):
        self.ema = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema_p, p in zip(self.ema.parameters(), model.parameters()):
            ema_p.mul_(self.decay).add_(p.data, alpha=1 - self.decay)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--image-size", type=int, default=16)
    parser.add_argument("--timesteps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--count", type=int, default=64)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Shapes(args.count, args.image_size), batch_size=args.batch_size, shuffle=True, drop_last=True)
    diffusion = Diffusion(UNet(), args.timesteps).to(device)
    ema = EMA(diffusion)
    opt = torch.optim.Adam(diffusion.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        total = 0.0
        for step, (x, _) in enumerate(loader):
            x = x.to(device)
            loss = diffusion(x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(diffusion)
            total += loss.item()
            if step % 4 == 0:
                print(f"epoch {epoch} step {step}/{len(loader)} loss {loss.item():.4f}")
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    images = ema.ema.sample((4, 1, args.image_size, args.image_size))
    final = (images[-1].clamp(-1, 1) + 1) / 2
    print(len(images), tuple(final.shape), float(final.mean()))


if __name__ == "__main__":
    main()
