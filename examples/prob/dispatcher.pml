// Twelve jobs go to four clients at random. Given that `left` jobs remain for `clients` clients,
// how many the first of them gets is a sum of flips; then the rest share what is left. A client
// can handle six jobs; overload is when any gets more.
letfun share(jobs: int, clients: int) : int measure jobs =
  if jobs = 0 then 0
  else share(jobs - 1, clients) + (if flip(1 / clients) then 1 else 0)
in
letfun overload(left: int, clients: int) : bool measure clients =
  if clients = 1 then left > 6
  else
    let mine = share(left, clients) in
    if mine > 6 then true else overload(left - mine, clients - 1)
in
(overload(12, 4)) : {bad:bool | Prob(bad) <= 1/15}
