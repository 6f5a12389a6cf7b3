-- Which of these stopped lanes are to try again now: their pause is over, or a person asked for it.
SELECT id FROM delivery_lane
WHERE id = ANY (%(lane)s::bigint[]) AND state = 'BLOCKED' AND next_try_at <= now()
