-- Stores script outputs of deliveries of which no attempt has sent another output.
-- A stored output stays, so that each attempt sends the same; only the output of a later version of
-- the script replaces one that no attempt has sent.
INSERT INTO delivery_scriptoutput (delivery_id, script_version, body, content_type, headers, path)
SELECT delivery_id, script_version, decode(body, 'base64'), content_type, headers, path
FROM json_to_recordset(%(rows)s::json) AS made (
    delivery_id bigint, script_version int, body text, content_type text, headers jsonb, path text
)
ON CONFLICT (delivery_id) DO UPDATE
SET script_version = excluded.script_version,
    body = excluded.body,
    content_type = excluded.content_type,
    headers = excluded.headers,
    path = excluded.path,
    made_at = now()
WHERE delivery_scriptoutput.script_version < excluded.script_version
