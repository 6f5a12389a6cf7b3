-- Drops the partitions of the range that begins with this message.
SELECT delivery_drop_range(%(first)s)
