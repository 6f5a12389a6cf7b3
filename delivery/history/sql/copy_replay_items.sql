-- Copies the messages of a replay from lines of replay and message; the primary key refuses
-- duplicates.
COPY delivery_replayitem (replay_id, message_id) FROM STDIN
