#!/usr/bin/env bash
# GRPO on ToolRL-DR: train.sh [--dataset DIR|ORG/NAME@REVISION] [--config full|mixed] [hydra overrides …]
#
#   train_recipes/toolrl_dr/train.sh --dataset toolrl-dr --config full
#   train_recipes/toolrl_dr/train.sh --dataset org/toolrl-dr@v1.0.0 --config mixed trainer.n_gpus_per_node=4
#
# Two GPUs of 48 GB; the paper took 9 h 19 min (full) on 2 × RTX 6000 Ada. Run `rbtc train check` first.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dataset=toolrl-dr
config=full
while [ $# -gt 0 ]; do
  case "$1" in
    --dataset) dataset=$2; shift 2 ;;
    --config) config=$2; shift 2 ;;
    *) break ;;
  esac
done
files=$(python -m robustbench_tc.train_recipes.dataset "$dataset" "$config")
{ read -r train; read -r validation; } <<<"$files"
# Validation by component: accuracy, what each component costs, how much of it training has closed.
export VERL_USE_EXTERNAL_MODULES="${VERL_USE_EXTERNAL_MODULES:+$VERL_USE_EXTERNAL_MODULES,}robustbench_tc.train_recipes.verl_plugin"
set -x
exec python -m verl.trainer.main_ppo \
  --config-path "$here" --config-name grpo \
  data.train_files="$train" data.val_files="$validation" \
  trainer.experiment_name="toolrl-dr-$config" "$@"
