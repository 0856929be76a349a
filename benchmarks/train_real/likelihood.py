"""Which of a question's answers a model finds likeliest, and what it writes of its own accord.

python -m benchmarks.train_real.likelihood MODEL questions.json SCORES.json
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robustbench_tc.io.files import atomic_file

from .rows import Question

WRITTEN = 20
"""Clean questions that each model also answers in writing."""


def loaded(model: Path) -> tuple[Any, Any]:
    """A model and its tokenizer, on the GPU where there is one."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    read = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).to(device)
    return read.eval(), AutoTokenizer.from_pretrained(model)


def prompt_ids(tokenizer: Any, asked: Question) -> list[int]:
    """Tokens up to where the model's answer begins."""
    text = tokenizer.apply_chat_template(asked.messages, add_generation_prompt=True, tokenize=False)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def likelihoods(model: Any, tokenizer: Any, asked: Question) -> list[float]:
    """Log-likelihood of each answer, summed over its tokens, given the prompt and the thought before it."""
    import torch

    before = prompt_ids(tokenizer, asked) + tokenizer(asked.thought, add_special_tokens=False)["input_ids"]
    answers = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in asked.answers]
    device, longest = model.device, max(map(len, answers))
    padded = torch.tensor([ids + [0] * (longest - len(ids)) for ids in answers], device=device)
    with torch.inference_mode():
        # the prompt is read once: every answer goes on from its keys and values
        head = model(input_ids=torch.tensor([before], device=device), use_cache=True, logits_to_keep=1)
        head.past_key_values.batch_repeat_interleave(len(answers))
        mask = torch.ones(len(answers), len(before) + longest, device=device)
        after = model(input_ids=padded, past_key_values=head.past_key_values, attention_mask=mask).logits
    first = head.logits.expand(len(answers), 1, -1)
    logits = torch.cat([first, after[:, :-1]], dim=1).float().log_softmax(-1)
    chosen = logits.gather(-1, padded.unsqueeze(-1)).squeeze(-1)
    return [float(row[: len(ids)].sum()) for row, ids in zip(chosen, answers, strict=True)]


def is_right(model: Any, tokenizer: Any, asked: Question) -> bool:
    """Whether the right answer is likelier than every other one."""
    right, *others = likelihoods(model, tokenizer, asked)
    return right > max(others)


def writes_right(model: Any, tokenizer: Any, asked: Sequence[Question]) -> int:
    """How many questions a model answers rightly, word for word, when it writes freely (greedily)."""
    import torch

    count = 0
    for one in asked:
        ids = torch.tensor([prompt_ids(tokenizer, one)], device=model.device)
        gold = one.thought + one.answers[0]
        longest = len(tokenizer(gold)["input_ids"]) + 8
        made = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=longest, do_sample=False,
            pad_token_id=tokenizer.eos_token_id,
        )  # fmt: skip
        count += tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True).strip() == gold
    return count


def scores(model: Path, questions: Path) -> dict[str, Any]:
    """Condition → clean id → whether it was answered rightly; and how many were written rightly."""
    asked = {
        condition: [Question(*one) for one in here]
        for condition, here in json.loads(questions.read_text()).items()
    }
    read, tokenizer = loaded(model)
    right = {
        condition: {one.clean_id: is_right(read, tokenizer, one) for one in here}
        for condition, here in asked.items()
    }
    return {"right": right, "written": writes_right(read, tokenizer, asked["clean"][:WRITTEN])}


if __name__ == "__main__":
    model, questions, out = map(Path, sys.argv[1:])
    with atomic_file(out) as part:
        part.write_text(json.dumps(scores(model, questions)) + "\n")
