"""The parameters of a list's address other than the list's filters."""

from django.contrib.admin.views.main import PAGE_VAR

# The bounds of a page by id, the choice of a tab above the list, and the row shown beside it.
BEFORE, AFTER, TAB, OPEN = "before", "after", "tab", "open"
# They belong to the present page, not to the filters.
OF_PAGE = (BEFORE, AFTER, OPEN, PAGE_VAR, "all", "e", "o")
