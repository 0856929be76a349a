"""Modules of their own for the environment that has verifiers (`rbtc list verifiers` prints this folder)."""
