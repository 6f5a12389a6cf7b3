-- Locks the partitions of a range: no other transaction can change, lock or add a row until this
-- transaction ends. Reads continue, and so does all work on other ranges: the tables themselves are
-- not locked. The number is written into the names, as Django's connection does with parameters.
LOCK TABLE
    delivery_message_%(first)s, delivery_settled_%(first)s, delivery_loggedattempt_%(first)s,
    delivery_scriptoutput_%(first)s
IN EXCLUSIVE MODE
