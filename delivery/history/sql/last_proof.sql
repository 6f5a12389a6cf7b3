-- The newest ended verification, and the proof left by it: null unless the history was proven.
SELECT id, result -> 'proof' AS proof
FROM delivery_pipelinerun
WHERE step = 'VERIFY' AND state = 'DONE'
ORDER BY id DESC
LIMIT 1
