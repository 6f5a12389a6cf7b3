"""Whether the cluster is to stop: shared by its top process and the workers it forks.

django-q2 never tells a busy worker that the cluster stops, so the top process sets this
event, made before it forks, and every loop looks at it.
"""

from multiprocessing import get_context

stopping = get_context("fork").Event()
