"""The stop event of a cluster, shared by the top process and the forked workers.

django-q2 does not notify a busy worker of the cluster's stop, so the top process sets this event,
which is created before the fork, and every loop checks it.
"""

from delivery.cluster.events import ForkedEvent

stopping = ForkedEvent()
