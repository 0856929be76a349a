"""The facts of types and sources as the contract reads them."""

from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import schema, sources, taxonomy

from .refusals import refuses


def test_the_published_row_has_the_columns_that_a_release_has() -> None:
    row = taxonomy.published(taxonomy.get("CD_AB_pref"))
    assert list(row) == taxonomy.PUBLISHED
    assert (row["status"], row["static"], row["order"]) == ("extension", True, 23)
    assert taxonomy.published(taxonomy.get("transient_timeout"))["static"] is False


def test_levels_and_packs_are_those_of_the_axes() -> None:
    assert {kind.level for kind in taxonomy.types()} == {"perception", "interaction", "reasoning"}
    assert [kind.code for kind in taxonomy.types("all") if kind.pack == "offers"] == (
        "CD_AB_pref TD_AB_pref CD_swap TD_swap CD_NT_swap TD_NT_swap CD_AB_swap TD_AB_swap "
        "CD_inv TD_inv CD_unit TD_unit CD_moot TD_moot"
    ).split()


def test_an_unknown_type_is_a_user_error_with_near_misses() -> None:
    refuses("did you mean CD_AB", taxonomy.get, "CD_ABB")
    assert not taxonomy.known("CD_ABB") and taxonomy.known("CD_AB")


@pytest.mark.parametrize("fact", ["level", "pack", "channel", "may_change", "rows", "how_made"])
def test_data_without_a_fact_name_it_and_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fact: str
) -> None:
    content: dict[str, Any] = schema.loads(
        (Path(taxonomy.__file__).parent / "data/taxonomy.json").read_bytes()
    )
    del content["types"][7][fact]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "taxonomy.json").write_text(schema.dumps(content))
    monkeypatch.setattr("robustbench_tc.taxonomy.files", lambda package: tmp_path)
    refuses(f"`{fact}`.*make facts", taxonomy._all.__wrapped__)


def test_the_five_sources_stand_in_the_order_of_every_table() -> None:
    assert schema.SOURCES == ("bfcl_v3", "apibank", "rotbench", "toolalpaca", "tooleyes")
    assert schema.OUTPUT_FORMATS["apibank"] == "tool_call_tags"
    assert sum(source.rows.paper for source in sources.sources()) == 199
    assert [source.name for source in sources.sources() if not source.single_gold_tool] == ["tooleyes"]
    assert sources.find("rlla") is None
    refuses("unknown source 'rotbensh': did you mean rotbench", sources.get, "rotbensh")


def test_a_word_that_the_contract_does_not_have_is_an_attribute_error() -> None:
    for module in (schema, taxonomy):
        with pytest.raises(AttributeError, match="NO_SUCH"):
            module.NO_SUCH  # noqa: B018


def test_rows_of_a_profile() -> None:
    rows = taxonomy.get("same_name_B").rows
    assert (rows.of("paper"), rows.of("bundled"), rows.of("full")) == (138, 57, None)
