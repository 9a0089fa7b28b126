// A message is lost with one chance in five and sent again, at most `tries` times. The type holds
// for any number of tries up to six, so callers need not know how the function works.
letfun deliver(tries: {n:int | 1 <= n <= 6}) : {ok:bool | Prob(not ok) <= 1/5 /\ (tries >= 4 => Prob(ok) >= 998/1000)}
  measure tries =
  if flip(1/5) then (if tries = 1 then false else deliver(tries - 1)) else true
in
(deliver(4) /\ deliver(6)) : {both:bool | Prob(both) >= 996/1000}
