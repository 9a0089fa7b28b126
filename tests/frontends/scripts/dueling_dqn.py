"""DQN with a replay memory and a target network, on a walk of our own."""

import random
from collections import deque, namedtuple
import numpy as np
import torch
from torch import nn, optim

Transition = namedtuple("Transition", ("state", "action", "reward", "next_state", "done"))


class Walk:
    n_actions, size = 2, 7

    def reset(self):
        self.pos = self.size // 2
        return self._obs()

    def _obs(self):
        obs = np.zeros(self.size, dtype=np.float32)
        obs[self.pos] = 1.0
        return obs

    def step(self, action):
        self.pos += 1 if action == 1 else -1
        done = self.pos in (0, self.size - 1)
        return self._obs(), float(self.pos == self.size - 1), done


class Replay:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        batch = Transition(*zip(*random.sample(self.memory, n)))
        states = torch.from_numpy(np.stack(batch.state))
        nexts = torch.from_numpy(np.stack(batch.next_state))
        actions = torch.tensor(batch.action).unsqueeze(1)
        rewards = torch.tensor(batch.reward, dtype=torch.float32)
        done = torch.tensor(batch.done, dtype=torch.float32)
        return states, actions, rewards, nexts, done

    def __len__(self):
        return len(self.memory)


class Dueling(nn.Module):
    def __init__(self, obs, actions, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, hidden), nn.ReLU())
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def forward(self, x):
        h = self.trunk(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(dim=1, keepdim=True)


class Agent:
    def __init__(self, env, gamma=0.95, tau=0.05):
        self.env, self.gamma, self.tau = env, gamma, tau
        self.policy = Dueling(env.size, env.n_actions)
        self.target = Dueling(env.size, env.n_actions)
        self.target.load_state_dict(self.policy.state_dict())
        self.opt = optim.Adam(self.policy.parameters(), lr=1e-2)
        self.memory, self.steps = Replay(500), 0

    def act(self, state):
        eps = 0.05 + 0.85 * np.exp(-self.steps / 50)
        self.steps += 1
        if random.random() < eps:
            return random.randrange(self.env.n_actions)
        with torch.no_grad():
            return int(self.policy(torch.as_tensor(state).unsqueeze(0)).argmax(1).item())

    def learn(self, batch_size=16):
        if len(self.memory) < batch_size:
            return None
        s, a, r, s2, d = self.memory.sample(batch_size)
        q = self.policy(s).gather(1, a).squeeze(1)
        with torch.no_grad():
            best = self.policy(s2).argmax(1, keepdim=True)
            target = r + self.gamma * (1 - d) * self.target(s2).gather(1, best).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, target)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.policy.parameters(), 100)
        self.opt.step()
        for t, p in zip(self.target.parameters(), self.policy.parameters()):
            t.data.mul_(1 - self.tau).add_(p.data, alpha=self.tau)
        return loss.item()


def main(episodes=6):
    random.seed(0)
    torch.manual_seed(0)
    agent, returns = Agent(Walk()), []
    for episode in range(episodes):
        state, done, total = agent.env.reset(), False, 0.0
        while not done:
            action = agent.act(state)
            nxt, reward, done = agent.env.step(action)
            agent.memory.push(state, action, reward, nxt, done)
            state, total = nxt, total + reward
            loss = agent.learn()
        returns.append(total)
    print(np.mean(returns), loss)


if __name__ == "__main__":
    main()
