"""What `croissant.json` says in the responsible-AI vocabulary: how the data came about, what they are not.

The keys are mlcroissant's names of the vocabulary's properties (`data_biases` becomes `rai:dataBiases`).
"""

from collections.abc import Collection, Mapping, Sequence

from . import sentences

Properties = Mapping[str, str | list[str]]

COLLECTION_TYPES = ["Secondary Data Analysis", "Software Collection", "Manual Human Curator"]
"""Of the vocabulary's list."""

MAINTENANCE = (
    "Releases are immutable and have semantic versions. A corrected golden answer is an erratum and a new "
    "version; a wrong version is yanked, which the card and yanked.json state, and can still be "
    "loaded. Reports of wrong rows go to the repository that the card names."
)

PERSONAL = (
    "The names, passwords, tokens and addresses in clean rows are upstream's inventions. Every one was "
    "reviewed string by string; the audit rejects any that a perturbation adds."
)


def benchmark(
    clean_rows: int, sources: Sequence[str], generators: Sequence[str], codes: Collection[str]
) -> Properties:
    """Of the benchmark. `generators`: who wrote the rewritten texts; `codes`: the types that have rows."""
    origin = f"from {', '.join(sources)}" if sources else "written by the authors as starter samples"
    return {
        "data_collection": (
            f"{clean_rows} single-turn tool-calling samples {origin}, read at pinned commits, and the same "
            "samples under perturbations that deployment causes: of the query, of the tools' descriptions, "
            "of the registry, of its metadata, and of the first tool call's result. Nothing was collected "
            "from users."
        ),
        "data_collection_type": COLLECTION_TYPES,
        "data_collection_missing_data": (
            "Unusable upstream records are in the config known_issues with their reasons; pairs "
            "of sample and type that have no row are counted in build_report.json."
        ),
        "data_preprocessing_protocol": [
            "Tool schemas, golden answers and differences are stored as canonical JSON text.",
            "Every row is anchored to its clean row and carries the difference to it.",
        ],
        "data_annotation_protocol": [
            "Golden answers are upstream's; scoring is by rule. ToolEyes has none upstream: its labels were "
            "made by two independent passes of a language model and then reconciled.",
            "Rewritten texts are scored for equivalence by a judge; audit_report.json has the scores.",
        ],
        "machine_annotation_tools": list(generators) or ["none"],
        "data_biases": [
            f"{sentences.languages(codes)} Tools and requests are those that five research benchmarks chose.",
            "Model-written texts have the habits of the model that wrote them.",
            "The sources are public, so a model may have seen the clean samples in training.",
        ],
        "data_limitations": [
            f"{sentences.turns(codes)} {sentences.errors(codes)}",
            f"With {clean_rows} clean samples an interval of an accuracy is wide, and the rows of one clean "
            "sample are not independent.",
            f"It is not a safety or security test. {sentences.adversary(codes)}",
        ],
        "data_use_cases": [
            "Evaluation: how far a tool-calling model's accuracy falls when deployment noise enters.",
            "Not for training, and not for ranking models across versions.",
        ],
        "data_social_impact": (
            "Shows failures before users meet them. A high score says nothing about tools, languages or "
            "dialogues that are not in it."
        ),
        "personal_sensitive_information": [PERSONAL],
        "data_release_maintenance_plan": MAINTENANCE,
    }


def training(rows: int, generators: Sequence[str], codes: Collection[str]) -> Properties:
    """Of the training data. `codes`: the types that have rows."""
    return {
        "data_collection": (
            f"{rows} rows of ToolRL's prompts, the perturbed ones under one of {len(codes)} types, with "
            "golden answers that follow the perturbation. Nothing was collected from users."
        ),
        "data_collection_type": COLLECTION_TYPES[:2],
        "data_preprocessing_protocol": [
            "Rows with a request of the benchmark, and rows whose gold cannot be inferred, are left out."
        ],
        "data_annotation_protocol": ["Golden answers are ToolRL's, adapted by rule."],
        "machine_annotation_tools": list(generators) or ["none"],
        "data_biases": [
            f"{sentences.languages(codes)} Requests and tools are ToolRL's.",
            "Model-written texts have the habits of the model that wrote them.",
        ],
        "data_limitations": ["Golden answers are ToolRL's as they are. Transition errors are in one config."],
        "data_use_cases": ["Training of tool calling under deployment noise. Not for evaluating a model."],
        "data_social_impact": "Evaluate a model trained on it on other data before you rely on it.",
        "personal_sensitive_information": [
            "Names and addresses in prompts are upstream's. The audit looks for credentials in every text."
        ],
        "data_release_maintenance_plan": MAINTENANCE,
    }


def live(tasks: int, worlds: Sequence[str]) -> Properties:
    """Of the live dataset."""
    return {
        "data_collection": (
            f"{tasks} conversations with tools over the worlds {', '.join(worlds)}, and the same "
            "conversations with one fault between agent and tool. Nothing was collected from users."
        ),
        "data_collection_type": COLLECTION_TYPES,
        "data_collection_missing_data": (
            "Pairs of task and kind of fault that have no row are counted with their reasons in "
            "build_report.json."
        ),
        "data_preprocessing_protocol": ["Every golden call was executed, and the final state hashed."],
        "data_annotation_protocol": ["Labels come from trying the offered tools in the world, by rule."],
        "machine_annotation_tools": ["none"],
        "data_biases": [
            "English only; tasks and tools are those that their authors chose.",
            "The scripted user says the same whatever the agent does.",
        ],
        "data_limitations": [
            "One fault in an episode; worlds are small programs, not services.",
            f"With {tasks} tasks an interval of a success rate is wide.",
            "The rows of one task are not independent.",
        ],
        "data_use_cases": [
            "Evaluation: whether an agent notices a fault, corrects it, and tells the user the truth.",
            "Not for training, and not for ranking models across versions.",
        ],
        "data_social_impact": (
            "Shows harm by omission and by repetition before users meet it. A high score says nothing about "
            "other tools."
        ),
        "personal_sensitive_information": [
            "Names and addresses are inventions, reviewed string by string; the audit refuses new ones."
        ],
        "data_release_maintenance_plan": MAINTENANCE,
    }
