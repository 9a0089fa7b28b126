// A test finds a rare illness in 99 of 100 cases and cries wolf in 5 of 100. One positive result
// leaves the illness unlikely; two independent ones do not.
letfun test(ill: bool) : bool = if ill then flip(0.99) else flip(0.05) in
let ill = flip(0.001) in
let first = test(ill) in
let second = test(ill) in
((ill, first, second)
  : {(sick, one, two):(bool, bool, bool) |
       Prob(sick | one) <= 2/100 /\ Prob(sick | one /\ two) >= 1/4})
