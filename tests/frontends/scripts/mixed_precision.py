"""A transformer encoder trained in mixed precision: autocast, a gradient scaler, accumulation."""

import argparse
import contextlib
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=128):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-torch.log(torch.tensor(10000.0)) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class TransformerClassifier(nn.Module):
    def __init__(self, vocab, classes, d_model=32, nhead=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model)
        self.pos = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward=64, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, classes)

    def forward(self, tokens, padding_mask=None):
        x = self.encoder(self.pos(self.embed(tokens)), src_key_padding_mask=padding_mask)
        x = self.norm(x)
        if padding_mask is None:
            return self.head(x.mean(dim=1))
        keep = (~padding_mask).unsqueeze(-1).to(x.dtype)
        return self.head((x * keep).sum(1) / keep.sum(1).clamp(min=1))


def evaluate(model, loader, device, amp_dtype):
    model.eval()
    correct = total = 0
    with torch.inference_mode(), torch.autocast(device_type=device.type, dtype=amp_dtype):
        for tokens, labels in loader:
            tokens, labels = tokens.to(device), labels.to(device)
            logits = model(tokens, tokens == 0)
            assert logits.dtype == amp_dtype
            correct += (logits.argmax(-1) == labels).sum().item()
            total += labels.numel()
    return correct / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--accumulate", default=2, type=int)
    parser.add_argument("--no-amp", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    amp_dtype = torch.float16 if device.type == "cuda" else torch.bfloat16
    tokens = torch.randint(0, 50, (64, 12))
    labels = torch.randint(0, 4, (64,))
    loader = DataLoader(TensorDataset(tokens, labels), batch_size=8, shuffle=True, pin_memory=False)
    model = TransformerClassifier(50, 4).to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-3, epochs=args.epochs, steps_per_epoch=len(loader) // args.accumulate
    )
    scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
    autocast = (
        contextlib.nullcontext() if args.no_amp else torch.autocast(device_type=device.type, dtype=amp_dtype)
    )
    for epoch in range(args.epochs):
        model.train()
        start = time.perf_counter()
        running = 0.0
        optimizer.zero_grad(set_to_none=True)
        for i, (x, y) in enumerate(loader):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with autocast:
                logits = model(x, x == 0)
                loss = criterion(logits, y) / args.accumulate
            scaler.scale(loss).backward()
            running += loss.detach().float().item() * args.accumulate
            if (i + 1) % args.accumulate == 0:
                scaler.unscale_(optimizer)
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
                scheduler.step()
        accuracy = evaluate(model, loader, device, amp_dtype)
        seconds = time.perf_counter() - start
        print(f"{epoch}: loss {running / len(loader):.3f} norm {norm:.2f} accuracy {accuracy:.2f} {seconds:.1f}s")


if __name__ == "__main__":
    main()
