"""A subscription as people and clients write it: an id, a name, or `subscriber/name`."""

# No sequence reaches a longer id.
_LONGEST_ID = 18


def subscription_condition(
    text: str,
    *,
    id: str = "pk",
    name: str = "name",
    subscriber: str = "subscriber__name",
) -> dict[str, str | int]:
    """Return the values by which rows are those of the subscription, by the given columns.

    A number is an id, even if a subscription has this name. A longer number than any id is a name.
    """
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID:
        return {id: int(text)}
    owner, slash, own = text.partition("/")
    return {subscriber: owner, name: own} if slash else {name: text}
