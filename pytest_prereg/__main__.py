"""``python -m pytest_prereg``."""

from pytest_prereg.cli import main

if __name__ == "__main__":
    main()
