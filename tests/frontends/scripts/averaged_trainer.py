"""A trainer with hooks and callbacks, an exponential moving average, and averaged weights (SWA)."""

from __future__ import annotations

import logging
from collections import OrderedDict, defaultdict
from copy import deepcopy
from typing import Callable, Dict, List, Optional

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset, random_split

logger = logging.getLogger(__name__)


class AverageMeter:
    def __init__(self, name: str):
        self.name = name
        self.reset()

    def reset(self):
        self.val = 0.0
        self.avg = 0.0
        self.sum = 0.0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return f"{self.name} {self.val:.4f} ({self.avg:.4f})"


class ModelEma(nn.Module):
    def __init__(self, model: nn.Module, decay: float = 0.99, device: Optional[torch.device] = None):
        super().__init__()
        self.module = deepcopy(model)
        self.module.eval()
        self.decay = decay
        self.device = device
        if self.device is not None:
            self.module.to(device=device)

    def _update(self, model, update_fn):
        with torch.no_grad():
            for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
                if self.device is not None:
                    model_v = model_v.to(device=self.device)
                ema_v.copy_(update_fn(ema_v, model_v))

    def update(self, model):
        self._update(model, update_fn=lambda e, m: self.decay * e + (1.0 - self.decay) * m)


class Net(nn.Module):
    def __init__(self, num_classes: int = 5, width: int = 8):
        super().__init__()
        self.features = nn.Sequential(
            OrderedDict(
                [
                    ("conv1", nn.Conv2d(3, width, 3, padding=1, bias=False)),
                    ("bn1", nn.BatchNorm2d(width)),
                    ("act1", nn.ReLU()),
                    ("pool1", nn.MaxPool2d(2)),
                    ("conv2", nn.Conv2d(width, 2 * width, 3, padding=1, bias=False)),
                    ("bn2", nn.BatchNorm2d(2 * width)),
                    ("act2", nn.ReLU()),
                ]
            )
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2 * width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.features(x)).flatten(1)
        return self.fc(x)


class Hook:
    def before_train(self, trainer): ...

    def after_step(self, trainer): ...

    def after_epoch(self, trainer): ...


class LoggerHook(Hook):
    def __init__(self, every: int = 2):
        self.every = every

    def after_step(self, trainer):
        if trainer.step % self.every == 0:
            logger.info("step %d loss %s", trainer.step, trainer.meters["loss"])


class EmaHook(Hook):
    def before_train(self, trainer):
        trainer.ema = ModelEma(trainer.model)

    def after_step(self, trainer):
        trainer.ema.update(trainer.model)


class SwaHook(Hook):
    def __init__(self, start: int):
        self.start = start

    def before_train(self, trainer):
        trainer.swa_model = AveragedModel(trainer.model)
        self.swa_scheduler = SWALR(trainer.optimizer, swa_lr=0.05)

    def after_epoch(self, trainer):
        if trainer.epoch >= self.start:
            trainer.swa_model.update_parameters(trainer.model)
            self.swa_scheduler.step()
        else:
            trainer.scheduler.step()


class Trainer:
    def __init__(self, model, optimizer, scheduler, loss_fn: Callable, hooks: List[Hook]):
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.loss_fn = loss_fn
        self.hooks = hooks
        self.meters: Dict[str, AverageMeter] = {}
        self.history = defaultdict(list)
        self.step = 0
        self.epoch = 0
        self.activations = {}
        self.handles = []
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Conv2d):
                self.handles.append(module.register_forward_hook(self._keep(name)))

    def _keep(self, name):
        def hook(module, inputs, output):
            self.activations[name] = output.detach().abs().mean()

        return hook

    def call(self, event: str):
        for hook in self.hooks:
            getattr(hook, event)(self)

    def train(self, loader, val_loader, epochs: int):
        self.call("before_train")
        for self.epoch in range(epochs):
            self.meters["loss"] = AverageMeter("loss")
            self.model.train()
            for images, targets in loader:
                output = self.model(images)
                loss = self.loss_fn(output, targets)
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=1.0)
                self.optimizer.step()
                self.meters["loss"].update(loss.item(), images.size(0))
                self.step += 1
                self.call("after_step")
            self.call("after_epoch")
            self.history["loss"].append(self.meters["loss"].avg)
            for name, m in (("model", self.model), ("ema", self.ema.module)):
                acc1, acc3 = self.validate(m, val_loader)
                self.history[f"{name}/acc1"].append(acc1)
                print(f"epoch {self.epoch} {name}: acc1 {acc1:.2f} acc3 {acc3:.2f}")
        for handle in self.handles:
            handle.remove()

    @torch.no_grad()
    def validate(self, model, loader):
        model.eval()
        top1, top3 = AverageMeter("acc1"), AverageMeter("acc3")
        for images, targets in loader:
            acc1, acc3 = accuracy(model(images), targets, topk=(1, 3))
            top1.update(acc1.item(), images.size(0))
            top3.update(acc3.item(), images.size(0))
        return top1.avg, top3.avg


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


def main():
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(96, 3, 16, 16), torch.randint(0, 5, (96,)))
    train_set, val_set = random_split(dataset, [80, 16])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=8)
    model = Net()
    params = [
        {"params": [p for n, p in model.named_parameters() if "bn" in n], "weight_decay": 0.0},
        {"params": [p for n, p in model.named_parameters() if "bn" not in n]},
    ]
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    trainer = Trainer(
        model,
        optimizer,
        scheduler,
        nn.CrossEntropyLoss(label_smoothing=0.1),
        hooks=[LoggerHook(), EmaHook(), SwaHook(start=1)],
    )
    trainer.train(train_loader, val_loader, epochs=3)
    update_bn(train_loader, trainer.swa_model)
    print("swa", trainer.validate(trainer.swa_model, val_loader))
    print({name: round(float(value), 3) for name, value in trainer.activations.items()})
    print(dict(trainer.history))


if __name__ == "__main__":
    main()
