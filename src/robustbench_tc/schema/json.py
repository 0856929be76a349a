"""Canonical JSON: the text in which all lies that Parquet has no column type for.

Tool schemas, golden answers and diffs are JSON *text* in plain string columns. `datasets.Json` would decode
on read, but its decoder refuses integers beyond 64 bits and its encoder rounds floats (docs/data.md); text
survives every reader byte for byte.
"""

import hashlib
import json as stdlib_json
import re
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = Any
"""Anything JSON can hold; the scorers and the property tests narrow it."""

_encode = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
_NON_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""A MessagePack float whose exponent is all ones: no finite number. Other bytes may look the same."""


def dumps(value: Json) -> str:
    """Canonical JSON text: compact, UTF-8, insertion order kept (order and duplicates mean something here).

    Floats keep their shortest round-trip form, integers any length. Raises ValueError for what JSON cannot
    hold (NaN, infinities, lone surrogates).
    """
    try:
        text = _encode(value).decode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text holds a lone surrogate: {error}") from None
    # msgspec writes a non-finite float as null: look closer only where a null may have come out.
    if "null" in text and (":null" in text or ",null" in text or "[null" in text or text == "null"):
        try:
            finite = _NON_FINITE.search(_pack(value)) is None
        except OverflowError:  # integers beyond 64 bits have no place in MessagePack
            finite = False
        if not finite:
            stdlib_json.dumps(msgspec.to_builtins(value), allow_nan=False)
    return text


def loads(text: str | bytes) -> Json:
    """The value of a JSON text, integers exact. Raises ValueError with the position."""
    return msgspec.json.decode(text)


def digest(value: Json, digits: int = 16) -> str:
    """The first hex digits of the SHA-256 of a value's JSON.

    Not through `dumps`, which would look closer at every null: what holds a non-finite float cannot be
    written anyway.
    """
    return hashlib.sha256(_encode(value)).hexdigest()[:digits]
