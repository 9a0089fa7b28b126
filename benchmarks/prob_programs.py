"""Thirty classic programs of ``prob_table.py``, each with an answer that is known from elsewhere.

The answer is a fraction with its derivation, or the same program over all sequences of draws: a
Python function of ``flip`` and ``rand`` that returns None for runs that an observation rejects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb, factorial
from typing import Any

F = Fraction


@dataclass(frozen=True)
class Program:
    """A program with a boolean or integer value.

    Attributes:
        name: Its name.
        origin: The suite that it is known from.
        text: The program, which gives a truth value.
        answer: The probability of true.
    """

    name: str
    origin: str
    text: str
    answer: Callable[[], Fraction]


def brute(run: Callable[[Any, Any], bool | None]) -> Callable[[], Fraction]:
    """Return the probability of true over all sequences of draws, given no rejection."""

    def answer() -> Fraction:
        total = true = F(0)
        waiting: list[list[int]] = [[]]
        given: list[int] = []
        weight, at = F(1), 0

        def draw(chances: list[Fraction]) -> int:
            nonlocal weight, at
            if at == len(given):
                waiting.extend(
                    [*given, other] for other in range(1, len(chances)) if chances[other]
                )
                given.append(0)
            index = given[at]
            at += 1
            weight *= chances[index]
            return index

        def flip(p: Fraction | int) -> bool:
            return draw([1 - F(p), F(p)]) == 1

        def rand(low: int, high: int) -> int:
            return low + draw([F(1, high - low + 1)] * (high - low + 1))

        while waiting:
            given, weight, at = waiting.pop(), F(1), 0
            value = run(flip, rand)
            if value is not None:
                total += weight
                true += weight * value
        return true / total

    return answer


def _grass(flip: Any, rand: Any) -> bool | None:
    cloudy = flip(F(1, 2))
    rain = flip(F(4, 5) if cloudy else F(1, 5))
    sprinkler = flip(F(1, 10) if cloudy else F(1, 2))
    wet = (rain and flip(F(9, 10))) | (sprinkler and flip(F(4, 5)))
    return rain if wet else None


def _murder(flip: Any, rand: Any) -> bool | None:
    alice = flip(F(3, 10))
    gun = flip(F(3, 100) if alice else F(4, 5))
    hair = flip(F(1, 2) if alice else F(1, 20))
    return alice if gun and hair else None


def _alarm(flip: Any, rand: Any) -> bool | None:
    earthquake, burglary = flip(F(1, 10000)), flip(F(1, 1000))
    alarm = earthquake or burglary
    phone = flip(F(7, 10) if earthquake else F(99, 100))
    wakes = (flip(F(8, 10)) if alarm else flip(F(2, 10))) if earthquake else flip(F(6, 10))
    called = wakes and phone if alarm else False
    return burglary if called else None


def _asia(flip: Any, rand: Any) -> bool | None:
    asia, smokes = flip(F(1, 100)), flip(F(1, 2))
    tuberculosis = flip(F(5, 100) if asia else F(1, 100))
    cancer = flip(F(1, 10) if smokes else F(1, 100))
    bronchitis = flip(F(6, 10) if smokes else F(3, 10))
    either = tuberculosis or cancer
    xray = flip(F(98, 100) if either else F(5, 100))
    chance = {(1, 1): F(9, 10), (1, 0): F(7, 10), (0, 1): F(8, 10), (0, 0): F(1, 10)}
    breathless = flip(chance[int(either), int(bronchitis)])
    return cancer if xray and breathless else None


def _hall(flip: Any, rand: Any) -> bool | None:
    car, pick = rand(1, 3), rand(1, 3)
    if car == pick:
        offset = 1 if flip(F(1, 2)) else 2
        opened = (pick - 1 + offset) % 3 + 1
    else:
        opened = 6 - car - pick
    return 6 - pick - opened == car


def _gossip(flip: Any, rand: Any) -> bool | None:
    knows = [True, False, False, False]
    for _ in range(2):
        for person in range(4):
            if knows[person]:
                other = rand(0, 2)
                knows[other if other < person else other + 1] = True
    return all(knows)


def _crowds(flip: Any, rand: Any) -> bool | None:
    # Reiter and Rubin: the first honest member's message meets a bad one within five hops.
    seen = 0
    for _ in range(5):
        if flip(F(1, 6)):
            seen = 1
            break
        if not flip(F(4, 5)):
            break
    return bool(seen)


def _cryptographers(flip: Any, rand: Any) -> bool | None:
    coins = [flip(F(1, 2)) for _ in range(4)]
    payer = rand(0, 4)
    says = [(coins[i] != coins[(i + 1) % 4]) != (payer == i) for i in range(4)]
    return sum(says) % 2 == 1


def _nand(flip: Any, rand: Any) -> bool | None:
    # Three copies of a gate that fails with 1/50, behind inputs that are wrong with 1/10.
    high = 0
    for _ in range(3):
        x, y = flip(F(9, 10)), flip(F(9, 10))
        out = not (x and y)
        high += (not out) if flip(F(1, 50)) else out
    return high >= 2


def _retransmission() -> Fraction:
    # A frame is lost in all of its four attempts; an attempt needs the frame and its receipt.
    arrives = F(98, 100) * F(99, 100)
    return 1 - (1 - (1 - arrives) ** 4) ** 16


def _zeroconf() -> Fraction:
    # Bohnenkamp et al. 2003: q p^n / (1 - q (1 - p^n)).
    q, lost = F(1, 32), F(1, 10) ** 4
    return q * lost / (1 - q * (1 - lost))


def _trueskill(flip: Any, rand: Any) -> bool | None:
    a, b, c = rand(0, 4), rand(0, 4), rand(0, 4)
    first = a + rand(0, 2) > b + rand(0, 2)
    second = b + rand(0, 2) > c + rand(0, 2)
    return a > c if first and second else None


def _leader() -> Fraction:
    # Four processes draw one of three numbers; one that nobody else drew is elected, within
    # three rounds.
    good = sum(
        any(draws.count(each) == 1 for each in draws) for draws in product(range(3), repeat=4)
    )
    return 1 - (1 - F(good, 3**4)) ** 3


def _coupons() -> Fraction:
    # All of five coupons within twelve draws: inclusion and exclusion.
    return sum((F((-1) ** k * comb(5, k) * (5 - k) ** 12, 5**12) for k in range(6)), F(0))


def _birthday() -> Fraction:
    return 1 - F(factorial(365) // factorial(365 - 20), 365**20)


def _diamonds(count: int) -> Fraction:
    # Each diamond sends a packet along one of two ways, of which one drops one in ten thousand.
    return (1 - F(1, 2) * F(1, 10000)) ** count


def _ladder() -> Fraction:
    # Two rails; a rung swaps, stays or loses: a vector times a matrix for each of ten rungs.
    up, down = F(1), F(0)
    for _ in range(10):
        up, down = up * F(3, 4) + down * F(1, 8), up * F(1, 8) + down * F(3, 4)
    return up + down


def _walk() -> Fraction:
    # Back at the start after sixteen steps.
    return F(comb(16, 8), 2**16)


def _election() -> Fraction:
    # A majority of 31 voters, each for the first candidate with 11/20.
    p = F(11, 20)
    return sum((comb(31, k) * p**k * (1 - p) ** (31 - k) for k in range(16, 32)), F(0))


def _bias() -> Fraction:
    # A bias among tenths, seven heads of ten: is it above one half?
    weights = {k: F(k, 10) ** 7 * F(10 - k, 10) ** 3 for k in range(11)}
    return sum((w for k, w in weights.items() if k > 5), F(0)) / sum(weights.values())


def _rabbits(steps: int) -> Fraction:
    # Extinction of a population that dies out or doubles: f(s) = 2/5 + 3/5 s^2.
    chance = F(0)
    for _ in range(steps):
        chance = F(2, 5) + F(3, 5) * chance * chance
    return chance


def _sums(dice: int, least: int) -> Fraction:
    found = {0: F(1)}
    for _ in range(dice):
        more: dict[int, Fraction] = {}
        for total, weight in found.items():
            for face in range(1, 7):
                more[total + face] = more.get(total + face, F(0)) + weight / 6
        found = more
    return sum((weight for total, weight in found.items() if total >= least), F(0))


def _caesar() -> Fraction:
    # Which of four shifts, given the text; letters have frequencies 1/2, 1/4, 1/8, 1/8.
    chances, seen = [F(1, 2), F(1, 4), F(1, 8), F(1, 8)], (1, 1, 2, 1, 3, 1, 2, 0)
    weights = []
    for shift in range(4):
        weight = F(1)
        for letter in seen:
            weight *= chances[(letter - shift) % 4]
        weights.append(weight)
    return weights[1] / sum(weights)


def _times(count: int, line: str) -> str:
    return "\n".join(line.replace("#", str(index)) for index in range(count))


_DIE = """
letfun die(s: int) : int =
  if s = 0 then (if flip({p}) then die(1) else die(2))
  else if s = 1 then (if flip({p}) then die(3) else die(4))
  else if s = 2 then (if flip({p}) then die(5) else die(6))
  else if s = 3 then (if flip({p}) then die(1) else 1)
  else if s = 4 then (if flip({p}) then 2 else 3)
  else if s = 5 then (if flip({p}) then 4 else 5)
  else (if flip({p}) then die(2) else 6) in
die(0) = {face}
"""


PROGRAMS = (
    Program("die", "PRISM", _DIE.format(p="1/2", face=4), lambda: F(1, 6)),
    # Face 6 is reached by (1-p)^3, with any number of turns of p(1-p) before the last.
    Program("bent die", "PRISM", _DIE.format(p="1/3", face=6), lambda: F(8, 27) / (1 - F(2, 9))),
    Program(
        "gambler's ruin",
        "PRISM",
        """
letfun play(m: int) : bool =
  if m = 0 then false else if m = 40 then true
  else if flip(9/19) then play(m + 1) else play(m - 1) in
play(20)""",
        lambda: 1 / (1 + F(10, 9) ** 20),
    ),
    Program(
        "herman's ring of 3",
        "PRISM",
        """
letfun ring(a: bool, b: bool, c: bool, n: int) : bool =
  let sames = (if a = b then 1 else 0) + (if b = c then 1 else 0) + (if c = a then 1 else 0) in
  if sames = 1 then true else if n = 0 then false else
  let d = if a = c then flip(1/2) else c in
  let e = if b = a then flip(1/2) else a in
  let f = if c = b then flip(1/2) else b in
  ring(d, e, f, n - 1) in
ring(true, true, true, 4)""",
        lambda: 1 - F(1, 4) ** 4,
    ),
    Program(
        "retransmission",
        "PRISM",
        """
letfun send(frame: int, tries: int) : bool =
  if frame = 0 then false else if tries = 0 then true
  else if flip(98/100) /\\ flip(99/100) then send(frame - 1, 4) else send(frame, tries - 1) in
send(16, 4)""",
        _retransmission,
    ),
    Program(
        "zeroconf",
        "PRISM",
        """
letfun probe(n: int) : bool =
  if n = 0 then (if flip(1/32) then probe(4) else false)
  else if n = 1 then (if flip(1/10) then true else probe(0))
  else if flip(1/10) then probe(n - 1) else probe(0) in
probe(0)""",
        _zeroconf,
    ),
    Program(
        "leader election",
        "PRISM",
        """
letfun round(n: int) : bool =
  if n = 0 then false else
  let a = rand(0, 2) in let b = rand(0, 2) in let c = rand(0, 2) in let d = rand(0, 2) in
  let one = (not (a = b) /\\ not (a = c) /\\ not (a = d)) \\/ (not (b = a) /\\ not (b = c)
    /\\ not (b = d)) \\/ (not (c = a) /\\ not (c = b) /\\ not (c = d)) \\/ (not (d = a)
    /\\ not (d = b) /\\ not (d = c)) in
  if one then true else round(n - 1) in
round(3)""",
        _leader,
    ),
    Program(
        "crowds",
        "PRISM",
        """
letfun hop(n: int) : bool =
  if n = 0 then false else if flip(1/6) then true
  else if flip(4/5) then hop(n - 1) else false in
hop(5)""",
        brute(_crowds),
    ),
    Program(
        "dining cryptographers",
        "PRISM",
        """
let a = flip(1/2) in let b = flip(1/2) in let c = flip(1/2) in let d = flip(1/2) in
let payer = rand(0, 4) in
let p = not (not (a = b) = (payer = 0)) in let q = not (not (b = c) = (payer = 1)) in
let r = not (not (c = d) = (payer = 2)) in let s = not (not (d = a) = (payer = 3)) in
((if p then 1 else 0) + (if q then 1 else 0) + (if r then 1 else 0) + (if s then 1 else 0)) % 2 = 1
""",
        brute(_cryptographers),
    ),
    Program(
        "nand multiplexing",
        "PRISM",
        _times(
            3,
            "let x# = flip(9/10) in let y# = flip(9/10) in let o# = not (x# /\\ y#) in\n"
            "let g# = if flip(1/50) then not o# else o# in",
        )
        + "\n(if g0 then 1 else 0) + (if g1 then 1 else 0) + (if g2 then 1 else 0) >= 2",
        brute(_nand),
    ),
    Program(
        "coupon collector",
        "PRISM",
        """
letfun collect(have: int, draws: int) : bool =
  if have = 5 then true else if draws = 0 then false
  else if flip((5 - have) / 5) then collect(have + 1, draws - 1) else collect(have, draws - 1) in
collect(0, 12)""",
        _coupons,
    ),
    Program(
        "branching",
        "PRISM",
        """
letfun dies(n: int) : bool =
  if n = 0 then false else if flip(2/5) then true
  else let a = dies(n - 1) in let b = dies(n - 1) in a /\\ b in
dies(7)""",
        lambda: _rabbits(7),
    ),
    Program(
        "two coins",
        "Dice",
        "let a = flip(1/2) in let b = flip(1/2) in observe a \\/ b; a /\\ b",
        lambda: F(1, 3),
    ),
    Program(
        "grass",
        "Dice",
        """
let cloudy = flip(1/2) in
let rain = if cloudy then flip(4/5) else flip(1/5) in
let sprinkler = if cloudy then flip(1/10) else flip(1/2) in
let a = if rain then flip(9/10) else false in
let b = if sprinkler then flip(4/5) else false in
observe a \\/ b; rain""",
        brute(_grass),
    ),
    Program(
        "murder mystery",
        "Dice",
        """
let alice = flip(3/10) in
let gun = if alice then flip(3/100) else flip(4/5) in
let hair = if alice then flip(1/2) else flip(1/20) in
observe gun /\\ hair; alice""",
        brute(_murder),
    ),
    Program(
        "alarm",
        "Dice",
        """
let earthquake = flip(1/10000) in let burglary = flip(1/1000) in
let alarm = earthquake \\/ burglary in
let phone = if earthquake then flip(7/10) else flip(99/100) in
let wakes = if earthquake then (if alarm then flip(8/10) else flip(2/10)) else flip(6/10) in
observe alarm /\\ wakes /\\ phone; burglary""",
        brute(_alarm),
    ),
    Program(
        "asia",
        "Dice",
        """
let asia = flip(1/100) in let smokes = flip(1/2) in
let tuberculosis = if asia then flip(5/100) else flip(1/100) in
let cancer = if smokes then flip(1/10) else flip(1/100) in
let bronchitis = if smokes then flip(6/10) else flip(3/10) in
let either = tuberculosis \\/ cancer in
let xray = if either then flip(98/100) else flip(5/100) in
let breathless = if either then (if bronchitis then flip(9/10) else flip(7/10))
  else if bronchitis then flip(8/10) else flip(1/10) in
observe xray /\\ breathless; cancer""",
        brute(_asia),
    ),
    Program(
        "noisy or",
        "Dice",
        _times(12, "let c# = flip(1/5) in let l# = if c# then flip(3/10) else false in")
        + "\n"
        + " \\/ ".join(f"l{i}" for i in range(12)),
        lambda: 1 - (1 - F(1, 5) * F(3, 10)) ** 12,
    ),
    Program(
        "diamonds",
        "Dice",
        "let s = true in\n"
        + _times(
            40,
            "let r = flip(1/2) in let a = if r then s else false in\n"
            "let b = if r then false else s in let d = flip(1/10000) in\n"
            "let s = a \\/ (b /\\ not d) in",
        )
        + "\ns",
        lambda: _diamonds(40),
    ),
    Program(
        "ladder",
        "Dice",
        "let up = true in let down = false in\n"
        + _times(
            10,
            "let k = rand(0, 7) in\n"
            "let u = (up /\\ k < 6) \\/ (down /\\ k = 6) in\n"
            "let down = (up /\\ k = 6) \\/ (down /\\ k < 6) in let up = u in",
        )
        + "\nup \\/ down",
        _ladder,
    ),
    Program(
        "caesar",
        "Dice",
        "letfun letter() : int = choose {1/2: 0, 1/4: 1, 1/8: 2, 1/8: 3} in\n"
        "let shift = rand(0, 3) in\n"
        + "\n".join(f"observe (letter() + shift) % 4 = {c};" for c in (1, 1, 2, 1, 3, 1, 2, 0))
        + "\nshift = 1",
        _caesar,
    ),
    Program(
        "monty hall",
        "PSI",
        """
let car = rand(1, 3) in let pick = rand(1, 3) in
let open = if car = pick then (let o = if flip(1/2) then 1 else 2 in (pick - 1 + o) % 3 + 1)
  else 6 - car - pick in
6 - pick - open = car""",
        brute(_hall),
    ),
    Program(
        "gossip",
        "PSI",
        "let k0 = true in let k1 = false in let k2 = false in let k3 = false in\n"
        + "\n".join(
            f"let r = if k{i} then rand(0, 2) else 9 in\n"
            + "\n".join(
                f"let k{j} = k{j} \\/ r = {j if j < i else j - 1} in" for j in range(4) if j != i
            )
            for _ in range(2)
            for i in range(4)
        )
        + "\nk0 /\\ k1 /\\ k2 /\\ k3",
        brute(_gossip),
    ),
    Program(
        "birthdays",
        "PSI",
        """
letfun clash(n: int) : bool =
  if n = 20 then false else if flip(n / 365) then true else clash(n + 1) in
clash(0)""",
        _birthday,
    ),
    Program(
        "random walk",
        "PSI",
        """
letfun walk(n: int, at: int) : int =
  if n = 0 then at else walk(n - 1, if flip(1/2) then at + 1 else at - 1) in
walk(16, 0) = 0""",
        _walk,
    ),
    Program(
        "election",
        "PSI",
        """
letfun votes(n: int, ahead: int) : int =
  if n = 0 then ahead else votes(n - 1, if flip(11/20) then ahead + 1 else ahead) in
votes(31, 0) >= 16""",
        _election,
    ),
    Program(
        "bias of a coin",
        "PSI",
        "let k = rand(0, 10) in\n"
        + "\n".join(f"observe {'' if i < 7 else 'not '}flip(k / 10);" for i in range(10))
        + "\nk > 5",
        _bias,
    ),
    Program(
        "trueskill",
        "PSI",
        """
let a = rand(0, 4) in let b = rand(0, 4) in let c = rand(0, 4) in
observe a + rand(0, 2) > b + rand(0, 2); observe b + rand(0, 2) > c + rand(0, 2);
a > c""",
        brute(_trueskill),
    ),
    Program(
        "twenty dice",
        "PSI",
        """
letfun sum(n: int, acc: int) : int = if n = 0 then acc else sum(n - 1, acc + rand(1, 6)) in
sum(20, 0) >= 80""",
        lambda: _sums(20, 80),
    ),
    Program(
        "drunkard's cliff",
        "PSI",
        """
letfun step(at: int) : bool =
  if at = 0 then true else if at > 30 then false
  else if flip(2/3) then step(at + 1) else step(at - 1) in
step(1)""",
        # Ruin from 1 before 31 with odds r = 1/2: (r - r^31) / (1 - r^31).
        lambda: (F(1, 2) - F(1, 2) ** 31) / (1 - F(1, 2) ** 31),
    ),
)
