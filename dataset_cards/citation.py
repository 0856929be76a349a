"""What to cite: the paper, and a version of the dataset. `CITATION.cff` says the same of the paper."""

import textwrap

TITLE = "When Simulation Lies: A Sim-to-Real Benchmark and Domain-Randomized RL Recipe for Tool-Use Agents"
AUTHORS = (
    ("Xiaolin", "Zhou"),
    ("Aojie", "Yuan"),
    ("Zheng", "Luo"),
    ("Zipeng", "Ling"),
    ("Xixiao", "Pan"),
    ("Yicheng", "Gao"),
    ("Haiyue", "Zhang"),
    ("Jiate", "Li"),
    ("Shuli", "Jiang"),
    ("Prince Zizhuang", "Wang"),
    ("Zixuan", "Zhu"),
    ("Jinbo", "Liu"),
    ("Ryan A.", "Rossi"),
    ("Hua", "Wei"),
    ("Xiyang", "Hu"),
)
YEAR = 2026
ARXIV = "2605.11928"
DOI = f"10.48550/arXiv.{ARXIV}"
"""arXiv gives every paper this one."""

ADDRESS = f"https://arxiv.org/abs/{ARXIV}"

CREATOR = "The RobustBench-TC authors"
"""Who makes the datasets."""


def paper_bibtex() -> str:
    """The paper's entry."""
    authors = " and ".join(f"{family}, {given}" for given, family in AUTHORS)
    return _entry(
        "article",
        "zhou2026simulation",
        title=TITLE,
        author=authors,
        journal=f"arXiv preprint arXiv:{ARXIV}",
        year=str(YEAR),
        doi=DOI,
        url=ADDRESS,
    )


def dataset_bibtex(title: str, version: str, year: int, address: str, doi: str | None = None) -> str:
    """The entry of one version of a dataset; without an address of its own, the paper's stands there."""
    key = "".join(c if c.isalnum() else "_" for c in f"{title} {version}".lower())
    fields = {
        "title": f"{title} {version}",
        "author": f"{{{CREATOR}}}",
        "year": str(year),
        "version": version,
    }
    return _entry("misc", key, **fields, **({"doi": doi} if doi else {}), url=address)


def hub_address(repo: str, *, model: bool = False) -> str:
    """The page of a repository on the Hub."""
    return f"https://huggingface.co/{'' if model else 'datasets/'}{repo}"


def _entry(kind: str, key: str, **fields: str) -> str:
    width = max(map(len, fields))
    lines = [
        textwrap.fill(
            f"  {name:{width}} = {{{value}}}",
            width=110,
            subsequent_indent=" " * (width + 6),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, value in fields.items()
    ]
    return f"@{kind}{{{key},\n" + ",\n".join(lines) + "\n}"
