"""Segmentation with a compiled U-Net: dice loss, deep supervision, intersection over union."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, width=8, bilinear=False):
        super().__init__()
        self.n_channels, self.n_classes, self.bilinear = n_channels, n_classes, bilinear
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, width)
        self.down1 = Down(width, width * 2)
        self.down2 = Down(width * 2, width * 4)
        self.down3 = Down(width * 4, width * 8 // factor)
        self.up1 = Up(width * 8, width * 4 // factor, bilinear)
        self.up2 = Up(width * 4, width * 2 // factor, bilinear)
        self.up3 = Up(width * 2, width, bilinear)
        self.outc = nn.Conv2d(width, n_classes, kernel_size=1)
        self.aux = nn.Conv2d(width * 2 // factor, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(x4, x3)
        middle = self.up2(x, x2)
        x = self.up3(middle, x1)
        logits = self.outc(x)
        if self.training:
            aux = F.interpolate(self.aux(middle), size=logits.shape[-2:], mode="bilinear", align_corners=False)
            return logits, aux
        return logits


class Circles(Dataset):
    def __init__(self, count, size=(50, 66)):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        h, w = self.size
        ys = torch.arange(h).float()[:, None]
        xs = torch.arange(w).float()[None, :]
        mask = torch.zeros(h, w, dtype=torch.long)
        for label in (1, 2):
            cy, cx, r = torch.rand(3) * torch.tensor([h, w, 12.0])
            mask[((ys - cy) ** 2 + (xs - cx) ** 2) < r**2] = label
        image = torch.stack([(mask == k).float() for k in range(3)]) + 0.1 * torch.randn(3, h, w)
        return {"image": image, "mask": mask}


def dice_coeff(input, target, reduce_batch_first=False, epsilon=1e-6):
    assert input.size() == target.size()
    assert input.dim() == 3 or not reduce_batch_first
    sum_dim = (-1, -2) if input.dim() == 2 or not reduce_batch_first else (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


def multiclass_dice_loss(logits, mask, n_classes):
    probs = F.softmax(logits, dim=1).float()
    target = F.one_hot(mask, n_classes).permute(0, 3, 1, 2).float()
    return 1 - dice_coeff(probs.flatten(0, 1), target.flatten(0, 1), reduce_batch_first=True)


@torch.compile(dynamic=True, backend="eager")
def total_loss(logits, aux, mask):
    loss = F.cross_entropy(logits, mask) + multiclass_dice_loss(logits, mask, logits.shape[1])
    return loss + 0.4 * F.cross_entropy(aux, mask)


class ConfusionMatrix:
    def __init__(self, n):
        self.n = n
        self.mat = None

    def update(self, a, b):
        if self.mat is None:
            self.mat = torch.zeros((self.n, self.n), dtype=torch.int64, device=a.device)
        with torch.inference_mode():
            k = (a >= 0) & (a < self.n)
            inds = self.n * a[k].to(torch.int64) + b[k]
            self.mat += torch.bincount(inds, minlength=self.n**2).reshape(self.n, self.n)

    def compute(self):
        h = self.mat.float()
        acc_global = torch.diag(h).sum() / h.sum()
        acc = torch.diag(h) / h.sum(1)
        iu = torch.diag(h) / (h.sum(1) + h.sum(0) - torch.diag(h))
        return acc_global, acc, iu

    def __str__(self):
        acc_global, acc, iu = self.compute()
        return ("global correct: {:.1f}\naverage row correct: {}\nIoU: {}\nmean IoU: {:.1f}").format(
            acc_global.item() * 100,
            [f"{i:.1f}" for i in (acc * 100).tolist()],
            [f"{i:.1f}" for i in (iu * 100).tolist()],
            iu.mean().item() * 100,
        )


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(Circles(12), batch_size=4, shuffle=True)
    val_loader = DataLoader(Circles(5), batch_size=2)
    model = UNet(3, 3)
    model = model.to(memory_format=torch.channels_last)
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, weight_decay=1e-8, momentum=0.9, foreach=True)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=6, power=0.9)
    for epoch in range(2):
        compiled.train()
        for batch in train_loader:
            images = batch["image"].to(memory_format=torch.channels_last)
            true_masks = batch["mask"]
            assert images.shape[1] == model.n_channels, "the network has other channels than the picture"
            logits, aux = compiled(images)
            loss = total_loss(logits, aux, true_masks)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
        model.eval()
        confmat = ConfusionMatrix(3)
        with torch.no_grad():
            for batch in val_loader:
                predicted = model(batch["image"]).argmax(1)
                confmat.update(batch["mask"].flatten(), predicted.flatten())
        print(epoch, round(loss.item(), 4))
        print(confmat)


if __name__ == "__main__":
    main()
