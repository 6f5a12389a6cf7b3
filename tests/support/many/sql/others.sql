-- Further rows of a busy installation: idempotency keys of the last day, and the counts of
-- mailboxes' fetches in the last minutes.
INSERT INTO delivery_idempotencykey (publisher_id, key, digest, message_id, deliveries, created_at)
SELECT publisher_id, 'key-' || id, sha256(body), id, 1, published_at
FROM delivery_message
WHERE published_at > %(now)s::timestamptz - interval '1 day' AND id %% 5 = 0
    AND id BETWEEN %(first)s AND %(last)s;

INSERT INTO delivery_mailboxrate (subscriber_id, at, slot, received, acknowledged)
SELECT DISTINCT
    subscriber_id, date_trunc('minute', %(now)s::timestamptz) - interval '10 seconds' * number, 0,
    12, 11
FROM subscriptions_subscription, generate_series(1, 12) AS number
WHERE mode = 'PULL'
ON CONFLICT DO NOTHING
