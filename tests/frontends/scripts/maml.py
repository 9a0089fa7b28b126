"""Model-agnostic meta-learning of sine waves, over batches of tasks with vmap and grad."""

import argparse
import math

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F


class Regressor(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.fc1 = nn.Linear(1, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def sample_tasks(outer_batch_size, inner_batch_size):
    amplitudes, phases = [], []
    for _ in range(outer_batch_size):
        amplitudes.append(torch.empty(1).uniform_(0.1, 5.0))
        phases.append(torch.empty(1).uniform_(0.0, math.pi))
    amplitude = torch.stack(amplitudes)
    phase = torch.stack(phases)

    def get_batch():
        xs = torch.rand(outer_batch_size, inner_batch_size) * 10.0 - 5.0
        ys = amplitude * torch.sin(xs + phase)
        return xs.unsqueeze(-1), ys.unsqueeze(-1)

    x1, y1 = get_batch()
    x2, y2 = get_batch()
    return x1, y1, x2, y2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--num-tasks", type=int, default=4)
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--inner-lr", type=float, default=0.1)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Regressor()
    params = dict(model.named_parameters())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)

    def mse(predicted, expected):
        return torch.mean((predicted - expected) ** 2)

    def inner_loss(params, x1, y1):
        f = functional_call(model, params, (x1,))
        return mse(f, y1)

    def adapt(params, x1, y1):
        grads = grad(inner_loss)(params, x1, y1)
        return {k: params[k] - args.inner_lr * grads[k] for k in params}

    def task_loss(x1, y1, x2, y2):
        new_params = adapt(params, x1, y1)
        v_f = functional_call(model, new_params, (x2,))
        return mse(v_f, y2)

    losses = []
    for it in range(args.steps):
        x1, y1, x2, y2 = sample_tasks(args.num_tasks, args.shots)
        opt.zero_grad()
        inner_losses = vmap(task_loss)(x1, y1, x2, y2)
        loss = sum(inner_losses) / len(inner_losses)
        loss.backward()
        opt.step()
        if it % 2 == 0:
            print("Iteration %d -- Outer Loss: %.4f" % (it, loss))
        losses.append(loss.detach().item())

    # The same by hand, one task at a time, with a second derivative.
    for it in range(2):
        x1, y1, x2, y2 = sample_tasks(args.num_tasks, args.shots)
        opt.zero_grad()
        outer = torch.zeros(())
        for i in range(args.num_tasks):
            fast = {k: v for k, v in params.items()}
            support = mse(functional_call(model, fast, (x1[i],)), y1[i])
            grads = torch.autograd.grad(support, list(fast.values()), create_graph=True)
            fast = {k: v - args.inner_lr * g for (k, v), g in zip(fast.items(), grads)}
            outer = outer + mse(functional_call(model, fast, (x2[i],)), y2[i])
        (outer / args.num_tasks).backward()
        opt.step()

    # Gradients of each example.
    xs, ys, _, _ = sample_tasks(1, args.shots)
    detached = {k: v.detach() for k, v in params.items()}
    per_sample = vmap(grad(inner_loss), in_dims=(None, 0, 0))(detached, xs[0], ys[0])
    print({k: tuple(v.shape) for k, v in per_sample.items()})
    print(losses[0], losses[-1])


if __name__ == "__main__":
    main()
