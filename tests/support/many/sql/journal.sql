-- %(journal)s entries of the journal: unmatched messages, blocked and resumed lanes, people's
-- actions.
INSERT INTO delivery_journalentry (at, kind, text, actor, message_id, subscription_id)
SELECT
    %(now)s - interval '1 day' * %(days)s * (1 - number::float / %(journal)s),
    kinds.kind,
    CASE kinds.kind
        WHEN 'UNMATCHED' THEN 'msg_' || message_id || ' matched no subscription.'
        WHEN 'BLOCKED' THEN 'The lane is blocked: unreachable: connection refused.'
        WHEN 'RESUMED' THEN 'Resumed.'
        ELSE 'What happened, in a sentence as long as most of them are.'
    END,
    CASE WHEN kinds.kind IN ('SKIPPED', 'RESUBMITTED', 'DEACTIVATED') THEN 'ann' ELSE '' END,
    CASE
        WHEN kinds.kind IN ('UNMATCHED', 'SKIPPED', 'RESUBMITTED', 'DUPLICATE', 'FAILED')
            THEN message_id
    END,
    CASE WHEN kinds.kind = 'DEACTIVATED' THEN (SELECT min(id) FROM subscriptions_subscription) END
FROM generate_series(1::bigint, %(journal)s::bigint) AS number
CROSS JOIN LATERAL (SELECT (ARRAY[
    'UNMATCHED', 'BLOCKED', 'RESUMED', 'UNMATCHED', 'DUPLICATE', 'FAILED', 'BLOCKED', 'RESUMED',
    'RESUBMITTED', 'UNMATCHED', 'FAILED', 'EXPIRED', 'UNMATCHED', 'DUPLICATE', 'DUPLICATE',
    'SKIPPED', 'DEACTIVATED', 'FAILED', 'UNMATCHED'
])[1 + (number * 7919) %% 19] AS kind) AS kinds
CROSS JOIN LATERAL (
    SELECT
        %(first)s
            + floor(number::float / %(journal)s * (%(last)s - %(first)s))::bigint AS message_id
) AS about
ORDER BY number
