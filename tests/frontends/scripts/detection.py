import collections
import math
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F


class SmoothedValue:
    def __init__(self, window_size=20, fmt="{median:.4f} ({global_avg:.4f})"):
        self.deque = collections.deque(maxlen=window_size)
        self.total, self.count, self.fmt = 0.0, 0, fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def median(self):
        return torch.tensor(list(self.deque)).median().item()

    @property
    def global_avg(self):
        return self.total / self.count

    def __str__(self):
        return self.fmt.format(median=self.median, global_avg=self.global_avg)


class MetricLogger:
    def __init__(self, delimiter="\t"):
        self.meters = collections.defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                v = v.item()
            assert isinstance(v, (float, int))
            self.meters[k].update(v)

    def log_every(self, iterable, print_freq, header=""):
        i, start = 0, time.time()
        for obj in iterable:
            yield obj
            if i % print_freq == 0:
                print(self.delimiter.join([header, f"[{i}]"] + [f"{n}: {m}" for n, m in self.meters.items()]))
            i += 1
        print(f"{header} Total time: {time.time() - start:.1f}")


class Shapes(torch.utils.data.Dataset):
    def __init__(self, n=6, size=64):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        g = torch.Generator().manual_seed(idx)
        k = 1 + idx % 3
        xy = torch.rand(k, 2, generator=g) * (self.size - 24)
        boxes = torch.cat([xy, xy + 8 + 16 * torch.rand(k, 2, generator=g)], dim=1)
        target = {"boxes": boxes, "labels": torch.randint(1, 4, (k,), generator=g), "image_id": torch.tensor([idx]),
                  "area": (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 2] - boxes[:, 0])}
        return torch.rand(3, self.size, self.size, generator=g), target


def collate_fn(batch):
    return tuple(zip(*batch))


def box_iou(a, b):
    area1 = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area2 = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (area1[:, None] + area2 - inter)


class TinyFCOS(nn.Module):
    def __init__(self, num_classes=4, width=16, stride=8):
        super().__init__()
        self.stride, self.num_classes = stride, num_classes
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(width, width, 3, 2, 1), nn.ReLU())
        self.cls_logits = nn.Conv2d(width, num_classes, 3, padding=1)
        self.bbox_reg = nn.Conv2d(width, 4, 3, padding=1)

    def anchors(self, h, w, device):
        ys = (torch.arange(h, device=device) + 0.5) * self.stride
        xs = (torch.arange(w, device=device) + 0.5) * self.stride
        cy, cx = torch.meshgrid(ys, xs, indexing="ij")
        c = torch.stack([cx, cy], -1).reshape(-1, 2)
        return torch.cat([c - 12.0, c + 12.0], dim=1)

    def encode(self, anchors, boxes):
        aw, ah = anchors[:, 2] - anchors[:, 0], anchors[:, 3] - anchors[:, 1]
        ax, ay = anchors[:, 0] + aw / 2, anchors[:, 1] + ah / 2
        bw, bh = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
        bx, by = boxes[:, 0] + bw / 2, boxes[:, 1] + bh / 2
        return torch.stack([(bx - ax) / aw, (by - ay) / ah, torch.log(bw / aw), torch.log(bh / ah)], dim=1)

    def forward(self, images, targets=None):
        x = torch.stack(images)
        f = self.backbone(x)
        n, _, h, w = f.shape
        anchors = self.anchors(h, w, x.device)
        cls = self.cls_logits(f).permute(0, 2, 3, 1).reshape(n, -1, self.num_classes)
        reg = self.bbox_reg(f).permute(0, 2, 3, 1).reshape(n, -1, 4)
        if self.training:
            return self.compute_loss(anchors, cls, reg, targets)
        scores, labels = cls.softmax(-1)[..., 1:].max(-1)
        return [{"scores": s[s > 0.3], "labels": l[s > 0.3] + 1} for s, l in zip(scores, labels)]

    def compute_loss(self, anchors, cls, reg, targets):
        cls_losses, reg_losses = [], []
        for c, r, t in zip(cls, reg, targets):
            iou = box_iou(anchors, t["boxes"])
            best, idx = iou.max(dim=1)
            fg = best > 0.2
            labels = torch.where(fg, t["labels"][idx], torch.zeros_like(idx))
            cls_losses.append(F.cross_entropy(c, labels))
            want = self.encode(anchors[fg], t["boxes"][idx[fg]])
            reg_losses.append(F.smooth_l1_loss(r[fg], want, reduction="sum") / max(1, fg.sum().item()))
        return {"loss_classifier": torch.stack(cls_losses).mean(), "loss_box_reg": torch.stack(reg_losses).mean()}


def train_one_epoch(model, optimizer, data_loader, device, epoch, print_freq, scaler=None):
    model.train()
    metric_logger = MetricLogger(delimiter="  ")
    lr_scheduler = None
    if epoch == 0:
        warmup_iters = min(1000, len(data_loader) - 1)
        lr_scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0 / 1000, total_iters=warmup_iters)
    for images, targets in metric_logger.log_every(data_loader, print_freq, f"Epoch: [{epoch}]"):
        images = list(image.to(device) for image in images)
        targets = [{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        loss_value = losses.item()
        if not math.isfinite(loss_value):
            print(f"Loss is {loss_value}, stopping training")
            sys.exit(1)
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        if lr_scheduler is not None:
            lr_scheduler.step()
        metric_logger.update(loss=losses, **loss_dict)
        metric_logger.update(lr=optimizer.param_groups[0]["lr"])
    return metric_logger


device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
loader = torch.utils.data.DataLoader(Shapes(), batch_size=2, shuffle=True, collate_fn=collate_fn)
model = TinyFCOS().to(device)
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(params, lr=0.005, momentum=0.9, weight_decay=0.0005)
for epoch in range(2):
    train_one_epoch(model, optimizer, loader, device, epoch, print_freq=1)
model.eval()
with torch.no_grad():
    print(len(model([Shapes()[0][0]])))
