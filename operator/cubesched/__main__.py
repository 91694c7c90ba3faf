"""`python -m cubesched` and the console scripts."""

import sys

from cubesched.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
