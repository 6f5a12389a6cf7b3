-- Takes the messages of a replay as lines of replay and message; its primary key refuses a message twice.
COPY delivery_replayitem (replay_id, message_id) FROM STDIN
