"""A name or a text as its words."""

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+|\d+")


def words_of(text: str) -> frozenset[str]:
    """Its distinct words in small letters; `getOrder_byId` has get, order, by and id."""
    return frozenset(word.casefold() for word in _WORD.findall(text))
