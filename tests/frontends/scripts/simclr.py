"""SimCLR: two views of each picture, a projection head, and the NT-Xent loss."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class ContrastiveTransformations:
    def __init__(self, base_transforms, n_views=2):
        self.base_transforms = base_transforms
        self.n_views = n_views

    def __call__(self, x):
        return [self.base_transforms(x) for i in range(self.n_views)]


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for t in self.transforms:
            img = t(img)
        return img


class RandomHorizontalFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        return img.flip(-1) if random.random() < self.p else img


class RandomCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, img):
        _, h, w = img.shape
        top = random.randint(0, h - self.size)
        left = random.randint(0, w - self.size)
        return img[:, top : top + self.size, left : left + self.size]


class GaussianNoise:
    def __init__(self, std):
        self.std = std

    def __call__(self, img):
        return img + self.std * torch.randn_like(img)


class Pictures(Dataset):
    def __init__(self, count, transform=None):
        self.images = torch.rand(count, 3, 40, 40)
        self.labels = torch.randint(0, 10, (count,))
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image, label = self.images[idx], int(self.labels[idx])
        if self.transform is not None:
            image = self.transform(image)
        return image, label


def conv_bn(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = conv_bn(cin, cout, stride)
        self.conv2 = nn.Sequential(nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout))
        self.shortcut = nn.Sequential()
        if stride != 1 or cin != self.expansion * cout:
            self.shortcut = nn.Sequential(
                nn.Conv2d(cin, self.expansion * cout, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * cout),
            )

    def forward(self, x):
        return F.relu(self.conv2(self.conv1(x)) + self.shortcut(x))


class SimCLR(nn.Module):
    def __init__(self, hidden_dim, temperature):
        super().__init__()
        assert temperature > 0.0
        self.temperature = temperature
        self.convnet = nn.Sequential(
            conv_bn(3, 16, 1), BasicBlock(16, 16), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2),
            nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(),
        )
        self.head = nn.Sequential(
            nn.Linear(64, 4 * hidden_dim), nn.ReLU(inplace=True), nn.Linear(4 * hidden_dim, hidden_dim)
        )

    def forward(self, x):
        return self.head(self.convnet(x))

    def info_nce_loss(self, batch):
        imgs, _ = batch
        imgs = torch.cat(imgs, dim=0)
        feats = self(imgs)
        cos_sim = F.cosine_similarity(feats[:, None, :], feats[None, :, :], dim=-1)
        self_mask = torch.eye(cos_sim.shape[0], dtype=torch.bool, device=cos_sim.device)
        cos_sim.masked_fill_(self_mask, -9e15)
        pos_mask = self_mask.roll(shifts=cos_sim.shape[0] // 2, dims=0)
        cos_sim = cos_sim / self.temperature
        nll = -cos_sim[pos_mask] + torch.logsumexp(cos_sim, dim=-1)
        nll = nll.mean()
        comb_sim = torch.cat([cos_sim[pos_mask][:, None], cos_sim.masked_fill(pos_mask, -9e15)], dim=-1)
        sim_argsort = comb_sim.argsort(dim=-1, descending=True).argmin(dim=-1)
        return nll, {
            "acc_top1": (sim_argsort == 0).float().mean(),
            "acc_top5": (sim_argsort < 5).float().mean(),
            "acc_mean_pos": 1 + sim_argsort.float().mean(),
        }


@torch.no_grad()
def prepare_features(model, loader, device):
    network = model.convnet
    network.eval()
    feats, labels = [], []
    for imgs, lab in loader:
        feats.append(network(imgs.to(device)).detach().cpu())
        labels.append(lab)
    feats = torch.cat(feats, dim=0)
    labels = torch.cat(labels, dim=0)
    labels, idxs = labels.sort()
    return feats[idxs], labels


def knn(feats, labels, k=5):
    feats = F.normalize(feats, dim=1)
    sim = feats @ feats.T
    sim.fill_diagonal_(-1)
    _, near = sim.topk(k, dim=1)
    votes = F.one_hot(labels[near], num_classes=10).sum(dim=1)
    return (votes.argmax(dim=1) == labels).float().mean().item()


def main(args):
    device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")
    transform = Compose([RandomHorizontalFlip(), RandomCrop(32), GaussianNoise(0.1)])
    train_set = Pictures(args.count, ContrastiveTransformations(transform, n_views=2))
    loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
    eval_loader = DataLoader(Pictures(40, RandomCrop(32)), batch_size=10, shuffle=False)
    model = SimCLR(hidden_dim=args.hidden_dim, temperature=args.temperature).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs, eta_min=args.lr / 50)
    for epoch in range(args.epochs):
        model.train()
        for imgs, labels in loader:
            imgs = [im.to(device, non_blocking=True) for im in imgs]
            loss, metrics = model.info_nce_loss((imgs, labels))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        lr_scheduler.step()
        shown = ", ".join(f"{k} {v.item():.3f}" for k, v in metrics.items())
        print(f"epoch {epoch} loss {loss.item():.3f} lr {lr_scheduler.get_last_lr()[0]:.2e} {shown}")
    feats, labels = prepare_features(model, eval_loader, device)
    print("knn accuracy", knn(feats, labels))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", default=16, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--count", default=64, type=int)
    parser.add_argument("--hidden-dim", default=32, type=int)
    parser.add_argument("--lr", default=5e-4, type=float)
    parser.add_argument("--temperature", default=0.07, type=float)
    parser.add_argument("--weight-decay", default=1e-4, type=float)
    main(parser.parse_args())
