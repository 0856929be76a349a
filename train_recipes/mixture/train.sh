#!/usr/bin/env bash
# GRPO on rows of `full` and `retry` together: train.sh [--dataset DIR] [overrides …]
#
#   python -m robustbench_tc.train_recipes.mixture.rows toolrl-dr --share 0.5 --out mixture-training
#   train_recipes/mixture/train.sh --dataset mixture-training actor_rollout_ref.model.path=merged/toolrl-dr-full
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dataset=mixture-training
if [ "${1:-}" = --dataset ]; then dataset=$2; shift 2; fi
files=$(python -m robustbench_tc.train_recipes.dataset "$dataset" mixture)
{ read -r train; read -r validation; } <<<"$files"
# Validation by component: accuracy, what each component costs, how much of it training has closed.
export VERL_USE_EXTERNAL_MODULES="${VERL_USE_EXTERNAL_MODULES:+$VERL_USE_EXTERNAL_MODULES,}robustbench_tc.train_recipes.verl_plugin"
set -x
exec python -m verl.trainer.main_ppo \
  --config-path "$here" --config-name grpo_mixture \
  data.train_files="$train" data.val_files="$validation" \
  actor_rollout_ref.rollout.agent.agent_loop_config_path="$here/agent_loop.yaml" "$@"
