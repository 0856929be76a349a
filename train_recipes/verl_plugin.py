"""Validation by component, for VERL_USE_EXTERNAL_MODULES: verl imports what that names, in every process."""

from verl.trainer.ppo.v1 import PPOTrainer

from .verl_validation import install

install(PPOTrainer)
