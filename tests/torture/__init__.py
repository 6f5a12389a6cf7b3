"""A torture run: traffic, misbehaving receivers and random faults against a started product, judged from outside.

    python3 manage.py test --torture 300 --seed 7

`lanes` has the subscriptions under test, `traffic` publishes and fetches. `faults` chooses what is broken and when;
`killing`, `freezing`, `database` and `changing` break it, on a `stage`. `records` keeps what was seen from outside,
`oracle` has the promises, `judging` compares, `run` joins them. The seed decides what is
published, how each message is answered and which fault follows which; it does not decide the timing, so a seed
that failed once may have to be run several times.
"""
