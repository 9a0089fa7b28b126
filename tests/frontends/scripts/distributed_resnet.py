"""Train a residual network, over several processes where the launcher starts them."""

import argparse
import os
import random
import shutil
import time
from enum import Enum

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.parallel
import torch.optim
import torch.utils.data
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import LambdaLR, SequentialLR, StepLR
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="Residual network")
parser.add_argument("-a", "--arch", metavar="ARCH", default="resnet10", choices=["resnet10", "resnet18"])
parser.add_argument("-j", "--workers", default=0, type=int, metavar="N")
parser.add_argument("--epochs", default=2, type=int, metavar="N")
parser.add_argument("--start-epoch", default=0, type=int, metavar="N")
parser.add_argument("-b", "--batch-size", default=16, type=int, metavar="N")
parser.add_argument("--lr", "--learning-rate", default=0.1, type=float, dest="lr")
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
parser.add_argument("-p", "--print-freq", default=2, type=int)
parser.add_argument("--resume", default="", type=str, metavar="PATH")
parser.add_argument("-e", "--evaluate", dest="evaluate", action="store_true")
parser.add_argument("--seed", default=None, type=int)
parser.add_argument("--output", default="", type=str)
best_acc1 = 0


class Cutout:
    def __init__(self, size):
        self.size = size

    def __call__(self, img):
        h, w = img.shape[-2:]
        y, x = random.randrange(h), random.randrange(w)
        img = img.clone()
        img[:, max(0, y - self.size) : y + self.size, max(0, x - self.size) : x + self.size] = 0.0
        return img


class FakePictures(Dataset):
    def __init__(self, count, classes, transform=None):
        self.count, self.classes, self.transform = count, classes, transform

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = torch.randn(3, 32, 32)
        if self.transform:
            image = self.transform(image)
        return image, index % self.classes


class PrefetchLoader(DataLoader):
    """A loader that brings batches to the device one ahead."""

    def __init__(self, *args, device="cpu", **kwargs):
        super().__init__(*args, **kwargs)
        self.target_device = device

    def __iter__(self):
        ahead = None
        for images, target in super().__iter__():
            now = (images.to(self.target_device, non_blocking=True), target.to(self.target_device))
            if ahead is not None:
                yield ahead
            ahead = now
        if ahead is not None:
            yield ahead


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, layers, num_classes, width=8):
        super().__init__()
        self.inplanes = width
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self._make_layer(width, layers[0])
        self.layer2 = self._make_layer(width * 2, layers[1], stride=2)
        self.layer3 = self._make_layer(width * 4, layers[2], stride=2)
        self.layer4 = self._make_layer(width * 8, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width * 8, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, planes, blocks, stride=1):
        layers = [BasicBlock(self.inplanes, planes, stride)]
        self.inplanes = planes
        for _ in range(1, blocks):
            layers.append(BasicBlock(self.inplanes, planes))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


models = {"resnet10": lambda **kw: ResNet([1, 1, 1, 1], **kw), "resnet18": lambda **kw: ResNet([2, 2, 2, 2], **kw)}


class Summary(Enum):
    NONE = 0
    AVERAGE = 1
    SUM = 2


class AverageMeter(object):
    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name, self.fmt, self.summary_type = name, fmt, summary_type
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def all_reduce(self):
        total = torch.tensor([self.sum, self.count], dtype=torch.float32)
        dist.all_reduce(total, dist.ReduceOp.SUM, async_op=False)
        self.sum, self.count = total.tolist()
        self.avg = self.sum / self.count

    def __str__(self):
        fmtstr = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return fmtstr.format(**self.__dict__)


def is_distributed():
    return dist.is_available() and dist.is_initialized()


def main():
    args = parser.parse_args()
    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
    args.world_size = int(os.environ.get("WORLD_SIZE", 1))
    args.rank = int(os.environ.get("RANK", 0))
    if args.world_size > 1:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    main_worker(args)
    if is_distributed():
        dist.destroy_process_group()


def main_worker(args):
    global best_acc1
    device = torch.device("cuda", args.rank) if torch.cuda.is_available() else torch.device("cpu")
    model = models[args.arch](num_classes=10).to(device)
    raw_model = model
    if is_distributed():
        model = DDP(model, device_ids=[args.rank] if device.type == "cuda" else None)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    warmup = LambdaLR(optimizer, lr_lambda=lambda e: min(1.0, (e + 1) / 2))
    scheduler = SequentialLR(optimizer, [warmup, StepLR(optimizer, step_size=30, gamma=0.1)], milestones=[1])
    if args.resume:
        if os.path.isfile(args.resume):
            checkpoint = torch.load(args.resume, map_location=device)
            args.start_epoch = checkpoint["epoch"]
            best_acc1 = checkpoint["best_acc1"]
            raw_model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            scheduler.load_state_dict(checkpoint["scheduler"])
            print("=> loaded checkpoint '{}' (epoch {})".format(args.resume, checkpoint["epoch"]))
        else:
            print("=> no checkpoint found at '{}'".format(args.resume))
    train_set = FakePictures(48, 10, Cutout(4))
    val_set = Subset(FakePictures(40, 10), range(20))
    train_sampler = DistributedSampler(train_set) if is_distributed() else None
    train_loader = PrefetchLoader(
        train_set, batch_size=args.batch_size, shuffle=(train_sampler is None), num_workers=args.workers,
        sampler=train_sampler, device=device,
    )
    val_loader = DataLoader(val_set, batch_size=args.batch_size, shuffle=False, num_workers=args.workers)
    if args.evaluate:
        validate(val_loader, model, criterion, device, args)
        return
    for epoch in range(args.start_epoch, args.epochs):
        if train_sampler is not None:
            train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, args)
        acc1 = validate(val_loader, model, criterion, device, args)
        scheduler.step()
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        if args.rank == 0 and args.output:
            state = {
                "epoch": epoch + 1,
                "arch": args.arch,
                "state_dict": raw_model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            }
            save_checkpoint(state, is_best, args.output)


def train(train_loader, model, criterion, optimizer, epoch, args):
    batch_time = AverageMeter("Time", ":6.3f")
    losses = AverageMeter("Loss", ":.4e")
    top1 = AverageMeter("Acc@1", ":6.2f")
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1[0], images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0:
            print("\t".join([f"Epoch: [{epoch}][{i}/{len(train_loader)}]", str(batch_time), str(losses), str(top1)]))


@torch.no_grad()
def validate(val_loader, model, criterion, device, args):
    losses = AverageMeter("Loss", ":.4e", Summary.NONE)
    top1 = AverageMeter("Acc@1", ":6.2f", Summary.AVERAGE)
    model.eval()
    for images, target in val_loader:
        images, target = images.to(device), target.to(device)
        output = model(images)
        losses.update(criterion(output, target).item(), images.size(0))
        acc1, _ = accuracy(output, target, topk=(1, 5))
        top1.update(acc1[0], images.size(0))
    if is_distributed():
        top1.all_reduce()
    print(f" * {top1} {losses}")
    return top1.avg


def save_checkpoint(state, is_best, folder):
    filename = os.path.join(folder, "checkpoint.pth.tar")
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, os.path.join(folder, "model_best.pth.tar"))


@torch.no_grad()
def accuracy(output, target, topk=(1,)):
    maxk = max(topk)
    batch_size = target.size(0)
    _, pred = output.topk(maxk, 1, True, True)
    pred = pred.t()
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    res = []
    for k in topk:
        correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
        res.append(correct_k.mul_(100.0 / batch_size))
    return res


if __name__ == "__main__":
    main()
