"""`python -m robustbench_tc`: as `rbtc`."""

from robustbench_tc.cli import main

if __name__ == "__main__":
    main()
