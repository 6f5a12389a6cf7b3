-- Locks the partitions of a range: nobody else can change a row of it, lock one or add one until the transaction ends.
-- Reading goes on, and so does everything with other ranges: the tables themselves are not locked. The number is written into
-- the names, as Django's connection does with parameters.
LOCK TABLE
    delivery_message_%(first)s, delivery_settled_%(first)s, delivery_loggedattempt_%(first)s, delivery_scriptoutput_%(first)s
IN EXCLUSIVE MODE
