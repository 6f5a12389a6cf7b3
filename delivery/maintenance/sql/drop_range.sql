-- Drops the partitions of the range that begins with a message.
SELECT delivery_drop_range(%(first)s)
