-- Drops the partitions of the range beginning with this message.
SELECT delivery_drop_range(%(first)s)
