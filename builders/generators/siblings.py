"""The new tools that kept answers give a sample: rows are held to them."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from robustbench_tc.schema import Sample, Tool, dumps

from ..perturb import REGISTRY, refuse_text
from ..perturb.action import new_tools
from ..perturb.base import TextRequest
from .base import check
from .recorded import Book


def sets_of_new_tools(
    clean_id: str,
    registry: Sequence[Tool],
    orders: Iterable[Sequence[Book]],
    kept: Sequence[Book] | None = None,
) -> set[tuple[str, ...]]:
    """The sets of new tools that join a registry, each as sorted JSON text, by every order of the books.

    No set where an answer is missing, or is another than the build `kept`: a form can hide what was edited.
    """
    bare = Sample(
        id="",
        clean_id=clean_id,
        type_code="clean",
        source="",
        category="",
        messages=(),
        tools=tuple(registry),
        golden_answers=(),
        output_format="",
    )  # as far as the requests for new tools look at it
    asked = REGISTRY["redundant"].requests(bare)
    found = set[tuple[str, ...]]()
    for books in orders:
        written = [next(_accepted(request, books), None) for request in asked]
        given = [tools for tools in written if tools is not None]
        edited = kept is not None and written != [next(_accepted(one, kept), None) for one in asked]
        if len(given) == len(asked) and not edited:
            found.add(tuple(sorted(map(dumps, new_tools(registry, given)))))
    return found


def _accepted(request: TextRequest, books: Sequence[Book]) -> Iterator[list[Tool]]:
    answers = (answer for book in books for answer in book.answers(request))
    return (msgspec.convert(one, list[Tool]) for one in answers if check(request, one, refuse_text) is None)
