-- Draws as many consecutive message ids as requested, and returns the first. A sequence cannot be
-- locked: another transaction may draw ids between `nextval` and `setval`. They are within the
-- margin, so none is in the result.
SELECT setval(
    'delivery_message_id_seq',
    nextval('delivery_message_id_seq') + %(margin)s::bigint + %(count)s::bigint
) - %(count)s::bigint + 1
