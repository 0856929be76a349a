"""The perturbation types, one unit per code: `REGISTRY[code].perturb(sample, rng, context)`.

Every module of this folder is imported, so that a new file is all that a new type takes.
"""

from importlib import import_module
from pkgutil import iter_modules

from .base import (
    REGISTRY,
    Context,
    NotApplicable,
    Perturbation,
    Text,
    TextRequest,
    lost_digits,
    lost_values,
    normalise_text,
    refuse_answer,
    refuse_text,
)
from .query import gold_texts, kept_values, query_span, query_text

__all__ = [
    "REGISTRY",
    "Context",
    "NotApplicable",
    "Perturbation",
    "Text",
    "TextRequest",
    "gold_texts",
    "kept_values",
    "lost_digits",
    "lost_values",
    "normalise_text",
    "query_span",
    "query_text",
    "refuse_answer",
    "refuse_text",
]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
_sorted = sorted(REGISTRY.items(), key=lambda item: (item[1].order, item[0]))
REGISTRY.clear()
REGISTRY.update(_sorted)
