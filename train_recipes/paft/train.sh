#!/usr/bin/env bash
# Perturbation-augmented fine-tuning: train.sh [--dataset DIR|ORG/NAME@REVISION] [--gpus N] [overrides …]
#
#   train_recipes/paft/train.sh --dataset toolrl-dr --gpus 2
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dataset=toolrl-dr
gpus=2
while [ $# -gt 0 ]; do
  case "$1" in
    --dataset) dataset=$2; shift 2 ;;
    --gpus) gpus=$2; shift 2 ;;
    *) break ;;
  esac
done
files=$(python -m robustbench_tc.train_recipes.dataset "$dataset" paft)
{ read -r train; read -r validation; } <<<"$files"
set -x
exec torchrun --standalone --nnodes=1 --nproc_per_node="$gpus" -m verl.trainer.sft_trainer \
  --config-path "$here" --config-name sft \
  data.train_files="$train" data.val_files="$validation" "$@"
