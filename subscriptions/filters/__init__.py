"""The filter language, which selects the messages of a subscription.

Parse a filter once by `parse_filter`, compile the tree with `to_python` or `to_sql`, and evaluate
it on the `document` of a message. `tree` defines the meaning of the language.
"""

from subscriptions.filters.document import Document, document, header_name
from subscriptions.filters.errors import FilterError
from subscriptions.filters.parse import parse_filter, parse_path
from subscriptions.filters.to_python import identity_at, text_at, to_python
from subscriptions.filters.to_sql import INTURN_JSON_FUNCTION, to_sql
from subscriptions.filters.to_text import filter_identity, normal_form
from subscriptions.filters.tree import Condition

__all__ = [
    "INTURN_JSON_FUNCTION",
    "Condition",
    "Document",
    "FilterError",
    "document",
    "filter_identity",
    "header_name",
    "identity_at",
    "normal_form",
    "parse_filter",
    "parse_path",
    "text_at",
    "to_python",
    "to_sql",
]
