// A speed trap decides from two GPS positions. The car does not speed (its true position moves by
// less than 10), and the errors of the two readings alone must rarely trip the trap.
(let a = rand(-10, 10) in
 let b = a + rand(0, 10) in
 not (b - a >= 10) /\ ((b + rand(0, 5)) - (a + rand(0, 5)) >= 10))
 : {x:bool | Prob(x) <= 1/10}
