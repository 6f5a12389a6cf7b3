-- Creates the partitions of the messages from `first` to before `until`.
SELECT delivery_make_range(%(first)s, %(until)s)
