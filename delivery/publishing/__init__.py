"""The short way in: messages that many publishers post at one moment are stored by one statement.

A web process has a queue of posts and two committers, each a thread with a database connection. A post, of one message or
of a batch, waits in the queue as a coroutine. A committer takes what waits, up to a bound and from each key in turn; it matches
each message and stores all of them by one `accept.sql`, which is one transaction. While one committer waits for the disk, the
next posts gather for the other. A post that is alone is stored at once.

Only plain posts go this way: see `plain`. Every other request, and every refusal, is left to the view
(`delivery.api.publish`, `delivery.api.batch`): it answers as if there were no short way. So does it store, one by one, the
posts of a group that the database refused: a message that cannot be stored costs its neighbours a moment, nothing else.
The bad items of a batch that is `partial` are answered here, for its good ones are stored here.

Crash windows. Before the commit nothing of the group is stored, and no publisher has an answer. After it every message
is stored with its deliveries; who got no answer repeats the post with its idempotency keys, as ever. When the
connection breaks during the statement or the commit nobody knows, and each post is answered 503.

A batch is stored whole or not at all, also when another message had one of its keys: see `storing`.

Order. A publisher that waits for each answer publishes in order: ids are drawn by the statement that stores the message,
and the answer comes after its commit. The messages of a batch get their ids in its order.
"""
