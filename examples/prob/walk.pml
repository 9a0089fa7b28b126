// A robot arm drifts by a degree at each of twenty steps, one way, the other, or (as often as both
// together) not at all. It must rarely end ten degrees off.
letfun move(angle: int, steps: int) : int measure steps =
  if steps = 0 then angle
  else move(angle + choose {1/4: -1, 1/2: 0, 1/4: 1}, steps - 1)
in
(move(0, 20))
  : {angle:int | Prob(angle <= -10 \/ angle >= 10) <= 1/400 /\ E[angle] = 0 /\ E[angle * angle] = 10}
