"""What training on perturbed rows does to a small real model: `make train-real` (docs/training.md).

`registries.yaml` are tools and requests of ours, `rows` makes training rows and questions of them by `rbtc
build`, `likelihood` scores a model on questions, `result` has the numbers, the sentences and the figure, and
`__main__` is the command.
"""
