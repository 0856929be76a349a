"""The `category` of a row of own cases: what the scorer has to know of its turn beside the golden answers."""

import msgspec


class Category(msgspec.Struct, frozen=True):
    """What a row's `category` says."""

    kinds: tuple[str, ...]
    """Of the acceptable answers, in their order."""
    ordered: bool
    extra: bool
    turn: bool = False
    """Whether its case has several turns, of which the row is one: the statistics count those as one."""

    @property
    def text(self) -> str:
        """As it stands in the row: the kinds joined by `|` (`calls`, `no_call`, `ask`, `calls|ask`), then
        `+ordered`, `+extra` and `+turn` where they hold."""
        marks = {"ordered": self.ordered, "extra": self.extra, "turn": self.turn}
        return "+".join(["|".join(self.kinds), *(name for name, holds in marks.items() if holds)])


def read_category(text: str) -> Category:
    """The inverse of `Category.text`."""
    kinds, *marks = text.split("+")
    return Category(tuple(kinds.split("|")), "ordered" in marks, "extra" in marks, "turn" in marks)


def case_of(clean_id: str, category: str) -> str:
    """The clean id without the number of its turn: equal for the rows of one case, and of that case alone."""
    return clean_id.rpartition(".")[0] if read_category(category).turn else clean_id
