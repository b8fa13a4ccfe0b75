"""A study of a command whose result is read from what it prints, in two samples."""

from __future__ import annotations

READ = """\
[study]
id = "reads"
[experiments.read]
command = ["sh", "-c", "echo '{\\"t\\": [1, 2]}'"]
read = { file = "-", format = "json" }
metrics = { t = "s" }
repeats = 5
[predictions.quick]
claim = "It takes less than three seconds."
experiment = "read"
quantity = "t"
predicts = "< 3 s"
falsifier = ">= 4 s"
"""
