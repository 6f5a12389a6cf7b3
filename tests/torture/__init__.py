"""A torture run: traffic, misbehaving receivers and random faults, judged from outside.

    python3 manage.py test --torture 300 --seed 7

`lanes` has the subscriptions under test, `traffic` publishes and fetches. `faults` chooses the
faults and their order; `killing`, `freezing`, `database` and `changing` cause them, on a `stage`.
`records` has the observations from outside, `oracle` the promises, `judging` compares the two, and
`run` joins the parts. The seed decides the published messages, the answer to each message and the
order of the faults; it does not decide the timing, so a seed that failed once may have to be run
several times.
"""
