"""Options that take one of a few words: refused like every other unknown name, with near misses."""

from typing import Annotated, Any, Literal

import typer

from ..errors import unknown


def one_of(kind: str, *words: str, flag: str | None = None, help: str | None = None) -> Any:
    """A `typer.Option` for a `Literal` of these words. `kind` is what a refusal calls them: unknown KIND."""

    def read(word: str) -> str:
        if word not in words:
            raise unknown(kind, word, words)
        return word

    return typer.Option(*([flag] if flag else []), parser=read, metavar="<str>", help=help)


Subset = Annotated[
    Literal["all", "paper", "verified"],
    one_of(
        "subset",
        "all",
        "paper",
        "verified",
        help="all, paper: rows whose kind the paper's release has, or verified: rows that can be answered.",
    ),
]

LogKeys = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=KEY",
        help="Of a log that is not of our task: clean_id=KEY, type=KEY (of a sample's metadata), score=NAME. "
        "Repeatable.",
    ),
]
