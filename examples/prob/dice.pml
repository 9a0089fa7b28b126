// The sum of forty dice: 6 to the power of 40 runs, 1,176 rows at most.
letfun throw(dice: int, sum: int) : int measure dice =
  if dice = 0 then sum else throw(dice - 1, sum + rand(1, 6))
in
(throw(40, 0)) : {sum:int | E[sum] = 140 /\ Prob(120 <= sum /\ sum <= 160) >= 9/10}
