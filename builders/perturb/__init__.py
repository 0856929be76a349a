"""The perturbation types, one unit per code: `REGISTRY[code].perturb(sample, rng, context)`."""

from . import action, observation, reward, transition
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
    "action",
    "gold_texts",
    "kept_values",
    "lost_digits",
    "lost_values",
    "normalise_text",
    "observation",
    "query_span",
    "query_text",
    "refuse_text",
    "reward",
    "transition",
]
