"""MoCo: a momentum encoder and a queue of keys."""

import copy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TwoCrops(Dataset):
    def __init__(self, n=48):
        self.images = torch.rand(n, 3, 32, 32)

    def __len__(self):
        return len(self.images)

    def augment(self, img):
        if torch.rand(1).item() < 0.5:
            img = img.flip(-1)
        shift = torch.randint(-2, 3, (2,)).tolist()
        img = torch.roll(img, shifts=shift, dims=(1, 2))
        return img + 0.05 * torch.randn_like(img)

    def __getitem__(self, i):
        return self.augment(self.images[i]), self.augment(self.images[i])


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


class Encoder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.body = nn.Sequential(conv_block(3, 16), conv_block(16, 32), conv_block(32, 64))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        h = self.pool(self.body(x)).flatten(1)
        return F.normalize(self.head(h), dim=1)


class MoCo(nn.Module):
    def __init__(self, dim=64, K=128, m=0.99, T=0.07):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = Encoder(dim)
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * self.m + q.data * (1.0 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        n = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % n == 0
        self.queue[:, ptr : ptr + n] = keys.T
        self.queue_ptr[0] = (ptr + n) % self.K

    @torch.no_grad()
    def _shuffle(self, x):
        idx = torch.randperm(x.shape[0])
        return x[idx], torch.argsort(idx)

    def forward(self, im_q, im_k):
        q = self.encoder_q(im_q)
        with torch.no_grad():
            self._momentum_update()
            im_k, unshuffle = self._shuffle(im_k)
            k = self.encoder_k(im_k)[unshuffle]
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._enqueue(k)
        return logits, labels


def accuracy(output, target, topk=(1,)):
    maxk = max(topk)
    _, pred = output.topk(maxk, 1, True, True)
    pred = pred.t()
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    return [
        correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0))
        for k in topk
    ]


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(TwoCrops(), batch_size=16, shuffle=True, drop_last=True)
    model = MoCo()
    opt = torch.optim.SGD(model.encoder_q.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2)
    for epoch in range(2):
        for im_q, im_k in loader:
            logits, labels = model(im_q, im_k)
            loss = F.cross_entropy(logits, labels)
            acc1, acc5 = accuracy(logits, labels, (1, 5))
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        print(epoch, loss.item(), acc1.item(), acc5.item(), int(model.queue_ptr))
