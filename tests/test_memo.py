"""What is remembered belongs to the very object; generators in a series are those of `rng`."""

from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc import seeding
from robustbench_tc.memo import remembered


def test_equal_objects_are_asked_about_apart_and_each_only_once() -> None:
    asked: list[list[int]] = []

    @remembered(10)
    def length(one: list[int]) -> int:
        """How long it is."""
        asked.append(one)
        return len(one)

    first, second = [1, 2], [1, 2]
    assert [length(first), length(first), length(second)] == [2, 2, 2]
    assert len(asked) == 2 and asked[0] is first and asked[1] is second
    assert [length.passing(first), length.passing([1, 2, 3]), len(asked), len(length.found)] == [2, 3, 3, 2]
    assert length.__doc__ == "How long it is."


def test_no_other_object_is_taken_for_one_that_is_gone() -> None:
    """Addresses are used again; what is kept holds its object, up to the limit."""

    @remembered(4)
    def text(one: list[int]) -> str:
        return str(one)

    for number in range(200):
        assert text([number]) == f"[{number}]"


@given(
    st.integers(0, 2**70),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.lists(st.text(max_size=8), min_size=1, max_size=4),
)
def test_a_series_gives_the_generators_of_rng(seed: int, code: str, ids: list[str]) -> None:
    series = seeding.Series(seed, code)
    for one in ids:
        alone, generator = seeding.rng(seed, code, one), series.rng(one)
        assert [generator.random() for _ in range(3)] == [alone.random() for _ in range(3)]
        assert generator.gauss(0, 1) == alone.gauss(0, 1)
