"""What is cited is the same everywhere, with its year and its address."""

import re

import pytest
import yaml

from robustbench_tc.dataset_cards import checkpoint, citation

from ..conftest import ROOT


def fields(entry: str) -> dict[str, str]:
    """The fields of a BibTeX entry, line breaks inside a value as one blank."""
    assert entry.count("{") == entry.count("}")
    found = re.findall(r"^  (\w+) *= \{(.*?)\}(?:,\n|\n\})", entry, re.DOTALL | re.MULTILINE)
    return {name: " ".join(value.split()) for name, value in found}


def test_the_papers_entry_is_that_of_citation_cff() -> None:
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    entry = fields(citation.paper_bibtex())
    assert entry["title"] == cff["title"] and entry["year"] == str(cff["year"])
    assert entry["journal"] == cff["journal"]
    assert entry["doi"] == cff["doi"] and entry["url"] == cff["url"]
    authors = [f"{one['family-names']}, {one['given-names']}" for one in cff["authors"]]
    assert entry["author"].split(" and ") == authors


def test_citation_cff_names_the_packages_own_version() -> None:
    from robustbench_tc import __version__

    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cff["version"] == __version__ and cff["authors"][0]["name"] == citation.CREATOR


@pytest.mark.parametrize("doi", [None, "10.57967/hf/1234"])
def test_a_version_has_its_year_and_address(doi: str | None) -> None:
    entry = citation.dataset_bibtex("ToolRL-DR", "0.1.0", 2027, citation.hub_address("acme/toolrl-dr"), doi)
    found = fields(entry)
    assert entry.startswith("@misc{toolrl_dr_0_1_0,\n")
    assert found["title"] == "ToolRL-DR 0.1.0" and found["year"] == "2027" and found["version"] == "0.1.0"
    assert found["url"] == "https://huggingface.co/datasets/acme/toolrl-dr"
    assert found.get("doi") == doi


def test_every_card_has_the_papers_entry() -> None:
    model = checkpoint.Checkpoint(
        name="x",
        base_model="x",
        licence="x",
        dataset="x",
        dataset_version="1",
        dataset_config="x",
        recipe_name="x",
    )
    assert citation.paper_bibtex() in checkpoint.checkpoint_card(model, "1.0.0")
