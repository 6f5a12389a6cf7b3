"""The stop event of a cluster, shared by its top process and the workers it forks.

django-q2 does not notify a busy worker that the cluster stops, so the top process sets this event,
which is created before the fork, and every loop checks it.
"""

from delivery.cluster.events import ForkedEvent

stopping = ForkedEvent()
