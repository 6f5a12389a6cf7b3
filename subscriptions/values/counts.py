"""A number with a noun, for texts for people."""


def counted(count: int, noun: str) -> str:
    """Return `1 delivery`, `2,000 deliveries` or `3 fetches`; the noun is in the singular."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}es" if noun.endswith("ch") else f"{count:,} {noun}s"
