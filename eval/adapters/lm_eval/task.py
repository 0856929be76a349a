"""A task of lm-eval over the rows of one component: one request a row, sent as `rbtc eval` sends it.

lm-eval finds it through the YAML files beside it. Which dataset is said with `--metadata`.
"""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import datasets
import msgspec
from lm_eval.api.task import ConfigurableTask

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.adapters.foreign import KEY
from robustbench_tc.eval.adapters.rows import Rows
from robustbench_tc.eval.models import DEFAULT_DECODING
from robustbench_tc.eval.scripted import most_replies
from robustbench_tc.eval.stats.values import codes_of
from robustbench_tc.schema import Sample, dumps

METRIC = "correct"


@lru_cache(1)  # of all tasks of a run
def _rows(settings: str) -> Rows:
    return Rows(**msgspec.json.decode(settings), mode="prompt")


class RobustBench(ConfigurableTask):
    """`rbtc_clean`, `rbtc_observation`, `rbtc_action` and `rbtc_reward`."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        given = dict(config or {})
        given.pop("class", None)
        metadata: dict[str, Any] = given.setdefault("metadata", {})
        said = {"dataset": "robustbench-tc"} | {
            name: metadata[name]
            for name in ("dataset", "revision", "types", "sources", "samples")
            if name in metadata
        }
        try:
            self._bench = _rows(dumps(said))
            self._rows = self._chosen(str(given["task"]).removeprefix("rbtc_"))
        except UserError as error:
            raise SystemExit(f"rbtc: {error}") from None
        metadata[KEY] = msgspec.to_builtins(self._bench.origin)
        self._model = str(metadata.get("model") or metadata.get("pretrained") or "unnamed")
        given |= {
            "output_type": "generate_until",
            "test_split": "test",
            "doc_to_text": "{{id}}",  # the messages are in fewshot_context
            "doc_to_target": "{{gold}}",
            "generation_kwargs": {
                "until": [],
                "do_sample": False,
                "temperature": DEFAULT_DECODING["temperature"],
                "max_gen_toks": DEFAULT_DECODING["max_tokens"],
            },
            "metric_list": [{"metric": METRIC, "aggregation": "mean", "higher_is_better": True}],
            "process_results": self._judged,
        }
        super().__init__(config=given)

    def _chosen(self, component: str) -> dict[str, Sample]:
        """The rows of the task, with a line for those of its dataset that lm-eval cannot ask."""
        rows = [row for row in self._bench.rows.values() if isinstance(row, Sample)]
        asked = {row.id: row for row in rows if most_replies(row) == 1}
        found = {name: row for name, row in asked.items() if row.type_code in codes_of(component)}
        if component == taxonomy.CLEAN:
            shown = {code for name in (taxonomy.CLEAN, *taxonomy.COMPONENTS[:3]) for code in codes_of(name)}
            left = len(self._bench.rows) - sum(row.type_code in shown for row in asked.values())
            if left:
                logging.getLogger(__name__).warning(
                    "%d of %d rows are left out: lm-eval has one request a row and asks clean rows and the "
                    "core's static types (transition types and packs: rbtc eval, or inspect_ai)",
                    left,
                    len(self._bench.rows),
                )
        if not found:
            raise UserError(f"no row for rbtc_{component} is among those chosen: leave it out of --tasks")
        return found

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """The rows as lm-eval's documents: what they are called, without their texts."""
        rows = [
            {"id": row.id, **self._bench.identity(row), "gold": _gold(row)} for row in self._rows.values()
        ]
        self.dataset = datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)})

    def fewshot_context(
        self,
        doc: dict[str, Any],
        num_fewshot: int = 0,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        fewshot_as_multiturn: bool = False,
        chat_template: Callable[..., Any] | None = None,
        gen_prefix: str | None = None,
    ) -> Any:
        """The messages as they are, through the model's chat template (of an endpoint: none)."""
        if chat_template is None:
            raise SystemExit("rbtc: add --apply_chat_template: the rows are conversations")
        if num_fewshot or system_instruction or gen_prefix:
            raise SystemExit("rbtc: rows are asked as they are: no --num_fewshot, no --system_instruction")
        ask = self._bench.begin(doc["id"]).dialogue.ask()
        assert ask is not None
        return chat_template([dict(m) for m in ask.messages])

    def _judged(self, doc: dict[str, Any], results: list[str | None]) -> dict[str, float]:
        """Our scorer's verdict; the log's copy of the document gets it whole."""
        dialogue = self._bench.begin(doc["id"], self._model).dialogue
        dialogue.reply(dialogue.noted(msgspec.structs.replace(dialogue.base(), text=results[0] or "")))
        found = self._bench.judged(dialogue)
        doc["prediction"], doc["verdict"] = msgspec.to_builtins(found.prediction), found.record
        return {METRIC: found.reward}


def _gold(row: Sample) -> str:
    return " | ".join(
        "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer) for answer in row.golden_answers
    )
