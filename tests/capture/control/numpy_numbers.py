"""Numbers: iterations until they settle, integers with Python's signs, filters."""

# mypy: ignore-errors

import math

import numpy as np

from .program import Program, floats, lister, real, whole

PROGRAMS: list[Program] = []
program = lister(PROGRAMS)


@program(2.0, 0.0, 100.0, a="float")
def newton_root(a):
    if a == 0:
        return 0.0
    x = a
    while abs(x * x - a) > 1e-9 * a:
        x = 0.5 * (x + a / x)
    return x


@program((0.0, 3.0), (-5.0, 1.5), low="float", high="float")
def bisect(low, high):
    for _ in range(60):
        middle = (low + high) / 2
        if middle * middle * middle - 2 > 0:
            high = middle
        else:
            low = middle
        if high - low < 1e-6:
            break
    return low


@program((7, -2), (-7, 2), (7, 2), (-7, -2), (6, 3), a="int", b="int")
def signs(a, b):
    return a // b, a % b, divmod(a, b), -a // b, abs(a) % b


@program((48, 18), (17, 5), (5, 0), a="int", b="int")
def extended_gcd(a, b):
    x, next_x = 1, 0
    y, next_y = 0, 1
    while b:
        q = a // b
        a, b = b, a % b
        x, next_x = next_x, x - q * next_x
        y, next_y = next_y, y - q * next_y
    return a, x, y


@program((3, 13, 7), (2, 0, 5), (10, 1, 3), base="int", exponent="int", modulus="int")
def power_modulo(base, exponent, modulus):
    result = 1
    base = base % modulus
    while exponent > 0:
        if exponent % 2 == 1:
            result = result * base % modulus
        exponent = exponent // 2
        base = base * base % modulus
    return result


@program(floats(3, 3) @ floats(3, 3).T + np.eye(3, dtype=np.float32), real(2).reshape(1, 1),
         a="float32[n, n]")  # fmt: skip
def power_iteration(a):
    v = np.ones(len(a), dtype=np.float32)
    value = 0.0
    for step in range(100):
        w = a @ v
        new = float(np.sqrt((w * w).sum()))
        v = w / new
        if abs(new - value) < 1e-4:
            break
        value = new
    return v, value


@program((floats(6), 0.5), (floats(1), 0.9), x="float32[n]", decay="float")
def smoothed(x, decay):
    out = []
    level = None
    for v in x:
        level = v if level is None else decay * level + (1 - decay) * v
        out.append(level)
    return np.array(out)


@program(floats(9), floats(2), real(0, 0, 0), x="float32[n]")
def zero_crossings(x):
    places = []
    for i in range(1, len(x)):
        if x[i - 1] * x[i] < 0:
            places.append(i)
    return np.array(places, dtype=np.int64), len(places)


@program((1.0, 0.1), (3.0, 0.5), (0.0, 0.25), start="float", step="float")
def adaptive_steps(start, step):
    t, y, count = 0.0, start, 0
    while t < 1.0:
        full = y - step * y
        half = y - step / 2 * y
        half = half - step / 2 * half
        if abs(full - half) > 1e-3:
            step = step / 2
            continue
        y, t, count = half, t + step, count + 1
        if step < 0.25:
            step = step * 1.5
    return y, count


@program((real(1, 2, 3), 2.0), (real(5), -1.0), (real(1, 0, -1, 2), 0.5), c="float32[n]", x="float")
def horner(c, x):
    total = 0.0
    for a in c[::-1]:
        total = total * x + float(a)
    return total, math.floor(total), math.sqrt(abs(total))


@program((0.3, 0.5), (2.0, 2.0), (-0.7, 0.2), a="float", b="float")
def escape_time(a, b):
    x = y = 0.0
    n = 0
    while x * x + y * y <= 4 and n < 50:
        x, y = x * x - y * y + a, 2 * x * y + b
        n += 1
    return n


@program(real(1, 2, 3, 4), real(-1), floats(5), x="float32[n]")
def running(x):
    count, mean, square = 0, 0.0, 0.0
    for v in x:
        count += 1
        gap = float(v) - mean
        mean += gap / count
        square += gap * (float(v) - mean)
    return mean, square / count if count > 1 else 0.0


@program(whole(1, 0, 1, 1), whole(0), whole(1), bits="int64[n]")
def binary_value(bits):
    n = 0
    for b in bits:
        n = (n << 1) | int(b)
    return n


@program((floats(4), 1e-3), (floats(4, seed=1), 1e9), x="float32[n]", tol="float")
def gradient_descent(x, tol):
    rate = 0.1
    steps = 0
    while True:
        g = 2 * (x - 1)
        x = x - rate * g
        steps += 1
        if np.abs(g).max() < tol or steps >= 200:
            break
    else:
        steps = -1
    return x, steps


@program(13, 1, 100, n="int")
def digits(n):
    out = []
    while n > 0:
        out.append(n % 10)
        n //= 10
    out.reverse()
    return out


@program((floats(3, 3), 1), (floats(2, 2, seed=5), 4), a="float32[n, n]", k="int")
def matrix_power(a, k):
    result = np.eye(2, dtype=np.float32) if len(a) == 2 else np.eye(3, dtype=np.float32)
    while k:
        if k % 2:
            result = result @ a
        a = a @ a
        k = k // 2
    return result


@program(floats(4), floats(1), real(9, 9), real(0, 0), x="float32[n]")
def doubled_until_large(x):
    turns = 0
    while True:
        turns += 1
        if turns > 8:
            return x * 0, turns
        x = x + np.abs(x) * turns
        if x.sum() > 10:
            return x, turns


@program((whole(2, 0, 1),), (whole(1),), (whole(0, 0, 2, 1),), at="int64[n]")
def places_of_known_items(at):
    steps = np.zeros(3, int)
    counts = []
    for k in range(3):
        counts.append(steps[k] + 2 * k)
    return np.array(counts)[at] + np.array([steps[0], 7, 8])[at]


@program(
    (whole(1, 2, 3), whole(1, 2, 3)), (whole(1, 2, 4), whole(1, 3, 3)),
    (whole(0, 2, 3), whole(1, 1, 3)), (whole(1, 2, 2), whole(1, 2, 3)),
    (whole(1, 1, 1), whole(1, 2, 0)),
    a="int64[3]", b="int64[3]",
)  # fmt: skip
def orders_of_tuples(a, b):
    p, q = (a[0], a[1], a[2]), (b[0], b[1], b[2])
    found = [p == q, p != q, p < q, p <= q, p > q, p >= q, p[:2] < q, p < q[:2], p[:2] >= q[:1]]
    found += [(a[0],) == (b[0], b[1]), (a[0], 5) < (b[0], 4), p > (1, 2), p[:2] in [(1, 2), q[1:]]]
    return np.array(found)
