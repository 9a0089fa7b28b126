"""REINFORCE over batches of episodes, with a learned baseline and entropy."""
import argparse
import math
import random
from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

Step = namedtuple("Step", ["log_prob", "value", "reward", "entropy"])


class GridWorld:
    """A walk on a grid to a goal."""

    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]

    def __init__(self, size=5, limit=40):
        self.size = size
        self.limit = limit

    def observe(self):
        seen = np.zeros((2, self.size, self.size), dtype=np.float32)
        seen[0, self.row, self.column] = 1.0
        seen[1, self.size - 1, self.size - 1] = 1.0
        return seen.ravel()

    def reset(self):
        self.row, self.column, self.time = 0, 0, 0
        return self.observe()

    def step(self, action):
        dr, dc = self.moves[action]
        self.row = min(max(self.row + dr, 0), self.size - 1)
        self.column = min(max(self.column + dc, 0), self.size - 1)
        self.time += 1
        at_goal = self.row == self.size - 1 and self.column == self.size - 1
        done = at_goal or self.time >= self.limit
        return self.observe(), (1.0 if at_goal else -0.02), done, {"time": self.time}


class ActorCritic(nn.Module):
    def __init__(self, inputs, hidden, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh())
        self.policy = nn.Linear(hidden, actions)
        self.value = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return F.log_softmax(self.policy(h), dim=-1), self.value(h).squeeze(-1)


def play(env, model):
    steps = []
    observation = env.reset()
    done = False
    while not done:
        log_probs, value = model(torch.from_numpy(observation))
        draw = Categorical(logits=log_probs)
        action = draw.sample()
        observation, reward, done, _ = env.step(action.item())
        steps.append(Step(draw.log_prob(action), value, reward, draw.entropy()))
    return steps


def discounted(rewards, gamma):
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + gamma * total
        returns.insert(0, total)
    return returns


def loss_of(episodes, gamma):
    policy_losses, value_losses, entropies = [], [], []
    for steps in episodes:
        returns = torch.tensor(discounted([s.reward for s in steps], gamma))
        if len(returns) > 1:
            returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        for step, target in zip(steps, returns):
            advantage = target - step.value.detach()
            policy_losses.append(-step.log_prob * advantage)
            value_losses.append(F.smooth_l1_loss(step.value, target))
            entropies.append(step.entropy)
    policy = torch.stack(policy_losses).mean()
    value = torch.stack(value_losses).mean()
    return policy + 0.5 * value - 0.01 * torch.stack(entropies).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--gamma", type=float, default=0.98)
    args = parser.parse_args([])
    torch.manual_seed(0)
    random.seed(0)
    env = GridWorld()
    model = ActorCritic(2 * env.size * env.size, 32, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scores = []
    for update in range(args.updates):
        episodes = []
        for _ in range(args.episodes):
            steps = play(env, model)
            episodes.append(steps)
            scores.append(sum(step.reward for step in steps))
        loss = loss_of(episodes, args.gamma)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent = scores[-20:]
        print(update, loss.item(), sum(recent) / len(recent))


if __name__ == "__main__":
    main()
