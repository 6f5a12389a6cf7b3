-- Restores archived messages unchanged, id and order of publication included; returns their number.
-- Existing messages stay as they are. A message whose event type no longer exists is not restored;
-- a message whose publisher no longer exists is restored without publisher.
WITH restored AS (
    INSERT INTO delivery_message (
        id, event_type_id, publisher_id, headers, content_type, body, destination, published_at,
        owed, transaction_id, seen_before
    )
    OVERRIDING SYSTEM VALUE
    SELECT
        archived.id, event_type.id, publisher.id, archived.headers, archived.content_type,
        archived.body, archived.destination, archived.published_at, archived.owed,
        archived.transaction_id, archived.seen_before
    FROM unnest(
        %(id)s::bigint[], %(event_type)s::text[], %(publisher)s::text[],
        %(headers)s::text[]::jsonb[], %(content_type)s::text[], %(body)s::bytea[],
        %(destination)s::text[], %(published_at)s::timestamptz[], %(owed)s::int[],
        %(transaction_id)s::bigint[], %(seen_before)s::bigint[]
    ) AS archived (
        id, event_type, publisher, headers, content_type, body, destination, published_at, owed,
        transaction_id, seen_before
    )
    JOIN subscriptions_eventtype event_type ON event_type.name = archived.event_type
    LEFT JOIN subscriptions_publisher publisher ON publisher.name = archived.publisher
    ORDER BY archived.id
    ON CONFLICT (id) DO NOTHING
    RETURNING id
)
SELECT count(*) FROM restored
