"""Golden calls and predicted calls, paired off."""


def all_matched(fits: list[list[int]]) -> bool:
    """Whether every golden call can have a predicted call of its own (maximum bipartite matching)."""
    taken: dict[int, int] = {}

    def place(expected: int, seen: set[int]) -> bool:
        for index in fits[expected]:
            if index in seen:
                continue
            seen.add(index)
            if index not in taken or place(taken[index], seen):
                taken[index] = expected
                return True
        return False

    return all(place(expected, set()) for expected in range(len(fits)))
