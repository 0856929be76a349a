"""What the tests of the recipes share: a tiny model and a small training set.

Tests that need verl run in the training environment (`make test-train`) and are skipped elsewhere.
"""

from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.builders.toolrl_dr import build
from robustbench_tc.builders.toolrl_spec import TrainingSpec
from robustbench_tc.builders.toolrl_versions import Checks
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.eval.score.reward import earns_maximum
from tests.builders import rlla_rows as made


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random two-layer Qwen2 and a byte-level tokenizer."""
    from tests.train_recipes.tiny import save_model

    folder = tmp_path_factory.mktemp("tiny")
    save_model(folder)
    return folder


@pytest.fixture(scope="session")
def tokenizer(tiny: Path) -> Any:
    from verl.utils import hf_tokenizer

    return hf_tokenizer(str(tiny))


@pytest.fixture(scope="session")
def training_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """70 train and 64 validation rows in all four configs; every prompt below 2,048 bytes."""
    folder = tmp_path_factory.mktemp("data")
    source = folder / "rlla"
    train = [made.ferry_row(n) for n in range(66)] + [made.dialogue_row()] * 2
    question = made.user("What does the library do on a Sunday afternoon?")
    train += [(made.system(made.LIBRARY, made.FERRY), question, made.reply())] * 2
    made.write_parquet(source / "train.parquet", train)
    made.write_parquet(source / "test.parquet", [made.ferry_row(1_000 + n) for n in range(64)])
    build(
        TrainingSpec(rlla=source, types=("action", "reward")),
        folder / "toolrl-dr",
        checks=Checks(earns_maximum=earns_maximum),
        card=training_card,
    )
    return folder / "toolrl-dr"
