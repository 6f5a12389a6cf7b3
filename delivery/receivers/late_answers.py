"""How a built-in receiver requests a late answer, or none, from the web server.

A late answer holds no thread: `config.web.postponed_answers` reads AFTER_HEADER, which it removes,
and sends the answer after so many seconds; with CLOSE it closes the connection instead. Without
Django, so the web server can read this before its settings.
"""

AFTER_HEADER = "inturn-answer-after"
CLOSE = "close"
