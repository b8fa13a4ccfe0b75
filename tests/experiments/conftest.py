"""Tests of the experiments of the repository's own study, which no distribution has."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

if (ROOT / "experiments").is_dir():
    sys.path.append(str(ROOT))
else:
    collect_ignore_glob = ["test_*.py"]
