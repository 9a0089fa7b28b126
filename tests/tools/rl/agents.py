"""Agents that tests serve: good ones, and ones that go wrong in every way."""

from __future__ import annotations

import os
import time


class Balancer:
    action_meanings = {0: "left", 1: "right"}  # noqa: RUF012

    def act(self, observation):
        return int(observation[2] + 0.5 * observation[3] > 0)

    def explain(self, observation):
        lean = float(observation[2] + 0.5 * observation[3])
        right = min(max(0.5 + 2 * lean, 0.0), 1.0)
        return {"action_probs": [1 - right, right], "state_value": 10 - abs(lean)}


class Everything:
    """Shows one of every kind of output."""

    def act(self, observation):
        return 1

    def explain(self, observation):
        return {
            "action_probs": [0.25, 0.75],
            "action_values": [1.0, -2.0],
            "z_values": [-1.0, 0.0, 1.0],
            "action_value_dist": [[0.2, 0.3], [0.3, 0.3], [0.5, 0.4]],
            "action_quantiles": [[0.0, 1.0], [2.0, 1.5]],
            "action_means": [0.1, -2.0],
            "action_vars": [1.0, 0.25],
            "action_deterministic": [0.5],
            "quadratic_value": {"mean": [0.1], "matrix": [[-1.0]], "value": 3.0},
            "state_value": 2.5,
            "action_value": 1.5,
            "mellowmax_beta": 3.0,
            "state_norm": 0.7,
        }


class Mute:
    def act(self, observation):
        return 0


class Raises(Mute):
    def act(self, observation):
        raise ValueError("the third wheel came off")


class Exits(Mute):
    def act(self, observation):
        os._exit(7)


class Quits(Mute):
    def act(self, observation):
        raise SystemExit(3)


class Hangs(Mute):
    def act(self, observation):
        while True:
            time.sleep(1)


class Eats(Mute):
    def __init__(self):
        self.held = []

    def act(self, observation):
        while True:
            self.held.append(bytearray(64 << 20))


class Aborts(Mute):
    def act(self, observation):
        os.abort()


class Counts:
    """Gives the wrong shape of values at the third step."""

    def __init__(self):
        self.calls = 0

    def act(self, observation):
        self.calls += 1
        return 0

    def explain(self, observation):
        return {"action_values": [1.0, 2.0] if self.calls < 3 else [[[1.0]], [[2.0]]]}


def fails():
    raise RuntimeError("no weights here")


def needs_two(env, weights):
    return Mute()


class Line:
    """A corridor: an environment of somebody's own, without pictures."""

    def reset(self):
        self.place = 0.0
        return [self.place]

    def step(self, action):
        self.place += 1.0
        return [self.place], 1.0, self.place >= 3, {}


def in_line():
    return Mute(), Line()
