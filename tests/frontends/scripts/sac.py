import copy
import itertools

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

LOG_STD_MAX, LOG_STD_MIN = 2, -20


def mlp(sizes, activation, output_activation=nn.Identity):
    layers = []
    for j in range(len(sizes) - 1):
        act = activation if j < len(sizes) - 2 else output_activation
        layers += [nn.Linear(sizes[j], sizes[j + 1]), act()]
    return nn.Sequential(*layers)


def combined_shape(length, shape=None):
    if shape is None:
        return (length,)
    return (length, shape) if np.isscalar(shape) else (length, *shape)


class SquashedGaussianMLPActor(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden_sizes, activation, act_limit):
        super().__init__()
        self.net = mlp([obs_dim] + list(hidden_sizes), activation, activation)
        self.mu_layer = nn.Linear(hidden_sizes[-1], act_dim)
        self.log_std_layer = nn.Linear(hidden_sizes[-1], act_dim)
        self.act_limit = act_limit

    def forward(self, obs, deterministic=False, with_logprob=True):
        net_out = self.net(obs)
        mu = self.mu_layer(net_out)
        log_std = torch.clamp(self.log_std_layer(net_out), LOG_STD_MIN, LOG_STD_MAX)
        pi_distribution = Normal(mu, torch.exp(log_std))
        pi_action = mu if deterministic else pi_distribution.rsample()
        if with_logprob:
            logp_pi = pi_distribution.log_prob(pi_action).sum(axis=-1)
            logp_pi -= (2 * (np.log(2) - pi_action - F.softplus(-2 * pi_action))).sum(axis=1)
        else:
            logp_pi = None
        return self.act_limit * torch.tanh(pi_action), logp_pi


class MLPQFunction(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden_sizes, activation):
        super().__init__()
        self.q = mlp([obs_dim + act_dim] + list(hidden_sizes) + [1], activation)

    def forward(self, obs, act):
        q = self.q(torch.cat([obs, act], dim=-1))
        return torch.squeeze(q, -1)


class MLPActorCritic(nn.Module):
    def __init__(self, obs_dim, act_dim, act_limit, hidden_sizes=(64, 64), activation=nn.ReLU):
        super().__init__()
        self.pi = SquashedGaussianMLPActor(obs_dim, act_dim, hidden_sizes, activation, act_limit)
        self.q1 = MLPQFunction(obs_dim, act_dim, hidden_sizes, activation)
        self.q2 = MLPQFunction(obs_dim, act_dim, hidden_sizes, activation)

    def act(self, obs, deterministic=False):
        with torch.no_grad():
            a, _ = self.pi(obs, deterministic, False)
            return a.numpy()


class ReplayBuffer:
    def __init__(self, obs_dim, act_dim, size):
        self.obs_buf = np.zeros(combined_shape(size, obs_dim), dtype=np.float32)
        self.obs2_buf = np.zeros(combined_shape(size, obs_dim), dtype=np.float32)
        self.act_buf = np.zeros(combined_shape(size, act_dim), dtype=np.float32)
        self.rew_buf = np.zeros(size, dtype=np.float32)
        self.done_buf = np.zeros(size, dtype=np.float32)
        self.ptr, self.size, self.max_size = 0, 0, size

    def store(self, obs, act, rew, next_obs, done):
        self.obs_buf[self.ptr] = obs
        self.obs2_buf[self.ptr] = next_obs
        self.act_buf[self.ptr] = act
        self.rew_buf[self.ptr] = rew
        self.done_buf[self.ptr] = done
        self.ptr = (self.ptr + 1) % self.max_size
        self.size = min(self.size + 1, self.max_size)

    def sample_batch(self, batch_size=32):
        idxs = np.random.randint(0, self.size, size=batch_size)
        batch = dict(obs=self.obs_buf[idxs], obs2=self.obs2_buf[idxs], act=self.act_buf[idxs],
                     rew=self.rew_buf[idxs], done=self.done_buf[idxs])
        return {k: torch.as_tensor(v, dtype=torch.float32) for k, v in batch.items()}


def sac(obs_dim=5, act_dim=2, steps=40, batch_size=16, gamma=0.99, polyak=0.995, seed=0):
    torch.manual_seed(seed)
    np.random.seed(seed)
    ac = MLPActorCritic(obs_dim, act_dim, 1.0)
    ac_targ = copy.deepcopy(ac)
    for p in ac_targ.parameters():
        p.requires_grad = False
    q_params = itertools.chain(ac.q1.parameters(), ac.q2.parameters())
    buf = ReplayBuffer(obs_dim, act_dim, 1000)
    log_alpha = torch.zeros(1, requires_grad=True)
    target_entropy = -float(act_dim)
    pi_opt = torch.optim.Adam(ac.pi.parameters(), lr=1e-3)
    q_opt = torch.optim.Adam(q_params, lr=1e-3)
    alpha_opt = torch.optim.Adam([log_alpha], lr=1e-3)

    def compute_loss_q(data):
        o, a, r, o2, d = data["obs"], data["act"], data["rew"], data["obs2"], data["done"]
        q1, q2 = ac.q1(o, a), ac.q2(o, a)
        with torch.no_grad():
            a2, logp_a2 = ac.pi(o2)
            q_pi_targ = torch.min(ac_targ.q1(o2, a2), ac_targ.q2(o2, a2))
            backup = r + gamma * (1 - d) * (q_pi_targ - log_alpha.exp() * logp_a2)
        loss_q1 = ((q1 - backup) ** 2).mean()
        loss_q2 = ((q2 - backup) ** 2).mean()
        return loss_q1 + loss_q2, dict(Q1Vals=q1.detach().numpy(), Q2Vals=q2.detach().numpy())

    def compute_loss_pi(data):
        o = data["obs"]
        pi, logp_pi = ac.pi(o)
        q_pi = torch.min(ac.q1(o, pi), ac.q2(o, pi))
        return (log_alpha.exp().detach() * logp_pi - q_pi).mean(), logp_pi.detach()

    o = np.random.randn(obs_dim).astype(np.float32)
    for t in range(steps):
        a = ac.act(torch.as_tensor(o, dtype=torch.float32).unsqueeze(0))[0] if t > 10 else np.random.uniform(-1, 1, act_dim)
        o2, r, d = np.random.randn(obs_dim), float(np.sum(a)), False
        buf.store(o, a, r, o2, d)
        o = o2
        if t >= 20 and t % 5 == 0:
            for _ in range(2):
                data = buf.sample_batch(batch_size)
                q_opt.zero_grad()
                loss_q, q_info = compute_loss_q(data)
                loss_q.backward()
                q_opt.step()
                for p in itertools.chain(ac.q1.parameters(), ac.q2.parameters()):
                    p.requires_grad = False
                pi_opt.zero_grad()
                loss_pi, logp = compute_loss_pi(data)
                loss_pi.backward()
                pi_opt.step()
                for p in itertools.chain(ac.q1.parameters(), ac.q2.parameters()):
                    p.requires_grad = True
                alpha_loss = -(log_alpha * (logp + target_entropy)).mean()
                alpha_opt.zero_grad()
                alpha_loss.backward()
                alpha_opt.step()
                with torch.no_grad():
                    for p, p_targ in zip(ac.parameters(), ac_targ.parameters()):
                        p_targ.data.mul_(polyak)
                        p_targ.data.add_((1 - polyak) * p.data)
    print(q_info["Q1Vals"].mean(), loss_pi.item(), log_alpha.item())


if __name__ == "__main__":
    sac()
