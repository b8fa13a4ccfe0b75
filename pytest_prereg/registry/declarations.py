"""Experiments as their modules declare them, read from the syntax tree: nothing of a user's is ever imported.

An experiment is a module-level function under ``@experiment(metrics={...}, preload=[...])``, both literal.
Its first parameter is ``repeat``, and the others are keyword-only.
"""

from __future__ import annotations

import ast
import keyword
import unicodedata
from pathlib import Path
from typing import Any

import msgspec

from pytest_prereg.errors import Problem
from pytest_prereg.registry.model import Metric, Source
from pytest_prereg.registry.refusals import quoted, suggestion
from pytest_prereg.registry.tables import MetricTable
from pytest_prereg.registry.trees import parse

PACKAGE = "pytest_prereg"
DECORATOR = "experiment"
OPTIONS = ("metrics", "preload")
RESERVED = frozenset({"completed"})

LITERAL = 'It is read without running the module: write out @experiment(metrics={"t_train": "s"}).'

Decorated = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Declared(msgspec.Struct, kw_only=True, frozen=True):
    """What a function says of itself by being decorated."""

    source: Source
    metrics: dict[str, Metric]
    parameters: dict[str, bool]
    """Whether a value must be given, by name."""


class Module(msgspec.Struct, kw_only=True, frozen=True):
    """A module that may declare experiments."""

    name: str
    """Importable once the right folder is first on ``sys.path``."""
    path: Path
    """Absolute."""
    shown: str
    """The path as people are told it."""
    built_in: bool = False


def metric(name: str, table: MetricTable) -> Metric:
    """The metric that a table declares under ``name``."""
    return Metric(
        name=name,
        unit=table.unit,
        source=table.from_,
        instrument=table.instrument,
        exact=table.exact,
        resolution=table.resolution,
        cap=table.cap,
    )


def read_declarations(module: Module) -> tuple[list[Declared], list[Problem]]:
    """The experiments that a module declares, and all that is wrong with how it declares them."""
    try:
        text = module.path.read_bytes()
    except OSError as error:
        message = f"{quoted(module.name)} can't be read: {error.strerror}"
        return [], [Problem(code="PR041", path=module.shown, message=message)]
    if PACKAGE.encode() not in text:  # spares the parsing of modules that can't declare any
        return [], []
    try:
        tree = parse(text)
    except SyntaxError as error:
        message = f"{quoted(module.name)} is no Python: {error.msg}"
        return [], [Problem(code="PR041", path=module.shown, line=error.lineno, message=message)]
    names = _Names(tree)
    readers = [
        _Reader(module, node, decorator, at_top=node in tree.body)
        for node in ast.walk(tree)
        if isinstance(node, Decorated)
        for decorator in node.decorator_list
        if names.mean_ours(decorator)
    ]
    declared = [each for reader in readers if (each := reader.declared()) is not None]
    return declared, [problem for reader in readers for problem in reader.problems]


def wrong_metric_name(name: str) -> str | None:
    """What keeps ``name`` from being a metric's, as the rest of a sentence; ``None`` if nothing does."""
    if not name.isidentifier() or keyword.iskeyword(name):
        return "must be named by a Python identifier"
    if not unicodedata.is_normalized("NFKC", name):
        return f"must be written {quoted(unicodedata.normalize('NFKC', name))} (NFKC)"
    return "has a name that quantities reserve" if name in RESERVED else None


def is_ours(module: str) -> bool:
    """Whether a dotted name leads into this package."""
    return module.split(".", 1)[0] == PACKAGE


class _Names:
    """What a module calls the decorator, and the modules of the package that may have it."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: set[str] = set()
        self.modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not node.level and is_ours(node.module or ""):
                self.functions |= {a.asname or DECORATOR for a in node.names if a.name in {DECORATOR, "*"}}
                self.modules |= {a.asname or a.name for a in node.names}
            elif isinstance(node, ast.Import):
                self.modules |= {a.asname or PACKAGE for a in node.names if is_ours(a.name)}

    def mean_ours(self, decorator: ast.expr) -> bool:
        """Whether an expression above a function is ``@experiment``, called or bare, under whatever name."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Name):
            return called.id in self.functions
        if not isinstance(called, ast.Attribute) or called.attr != DECORATOR:
            return False
        root: ast.expr = called
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(root, ast.Name) and root.id in self.modules


class _Reader:
    """Reads one decorated function; what is wrong with it gathers in ``problems``."""

    def __init__(self, module: Module, node: Decorated, decorator: ast.expr, *, at_top: bool) -> None:
        self.module = module
        self.node = node
        self.decorator = decorator
        self.problems: list[Problem] = []
        if not at_top:
            self.complain(node, "must stand at the top level of its module")

    def complain(self, node: ast.AST | None, wrong: str, advice: str | None = None) -> None:
        """Notes a problem at the line of ``node``: the experiment, and what it does that is ``wrong``."""
        line = getattr(node, "lineno", self.node.lineno)
        message = f"experiment {quoted(self.node.name)} {wrong}"
        problem = Problem(code="PR041", path=self.module.shown, line=line, message=message, advice=advice)
        self.problems.append(problem)

    def declared(self) -> Declared | None:
        """The declaration, or ``None`` where anything is wrong with it."""
        if not isinstance(self.node, ast.FunctionDef):
            self.complain(self.node, "must be a plain function (def)")
            return None
        options = self._options()
        metrics = self._metrics(options.get("metrics"))
        preload = self._preload(options.get("preload"))
        parameters = self._parameters(self.node.args)
        if self.problems:
            return None
        source = Source(
            function=self.node.name,
            path=None if self.module.built_in else self.module.path,
            module=self.module.name,
            line=self.node.lineno,
            preload=preload,
        )
        return Declared(source=source, metrics=metrics, parameters=parameters)

    def _options(self) -> dict[str, ast.expr]:
        """Keyword arguments of the decorator; a bare ``@experiment`` has none."""
        if not isinstance(self.decorator, ast.Call):
            return {}
        for argument in self.decorator.args:
            self.complain(argument, "must name the arguments of its decorator: @experiment(metrics={...})")
        options = {}
        for given in self.decorator.keywords:
            if given.arg is None:
                self.complain(given.value, "must write out the arguments of its decorator, without **")
            elif given.arg not in OPTIONS:
                unknown = quoted(given.arg) + suggestion(given.arg, OPTIONS)
                self.complain(given.value, f"gives its decorator an unknown argument {unknown}")
            else:
                options[given.arg] = given.value
        return options

    def _metrics(self, node: ast.expr | None) -> dict[str, Metric]:
        if node is None:
            self.complain(self.decorator, "declares no metrics", LITERAL)
            return {}
        if not isinstance(node, ast.Dict) or not node.keys:
            self.complain(node, "must declare its metrics as a literal, non-empty dict", LITERAL)
            return {}
        metrics: dict[str, Metric] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            read = self._metric(key, value)
            if read is not None and read.name in metrics:
                self.complain(key, f"declares metric {quoted(read.name)} twice")
            elif read is not None:
                metrics[read.name] = read
        return metrics

    def _metric(self, key: ast.expr | None, value: ast.expr) -> Metric | None:
        """One entry of the dict; ``key`` is ``None`` where another dict is spliced in (``**``)."""
        name = _literal(key) if key is not None else None
        if not isinstance(name, str):
            self.complain(key or value, "must name each metric by a literal string", LITERAL)
            return None
        if wrong := wrong_metric_name(name):
            self.complain(key, f"has metric {quoted(name)}, which {wrong}")
            return None
        table = _literal(value)
        if table is NOT_LITERAL:
            self.complain(value, f"declares metric {quoted(name)}, and not literally", LITERAL)
            return None
        try:
            return _converted(name, table)
        except ValueError as error:
            self.complain(value, f"declares metric {quoted(name)}: {error}")
            return None

    def _preload(self, node: ast.expr | None) -> tuple[str, ...]:
        modules = _literal(node) if node is not None else []
        if isinstance(modules, list | tuple) and all(isinstance(each, str) for each in modules):
            return tuple(modules)
        self.complain(node, "must give preload as a literal list of module names")
        return ()

    def _parameters(self, given: ast.arguments) -> dict[str, bool]:
        """Keyword-only parameters; everything but the leading ``repeat`` must be one."""
        positional = [*given.posonlyargs, *given.args]
        if not positional or positional[0].arg != "repeat":
            self.complain(self.node, 'must have "repeat" as its first parameter')
        for extra in positional[1:]:
            advice = f"def {self.node.name}(repeat, *, {extra.arg}, ...)"
            self.complain(extra, f"has parameter {quoted(extra.arg)}, which must be keyword-only", advice)
        for star in (given.vararg, given.kwarg):
            if star is not None:
                advice = "Otherwise a misspelt name in params could not be told."
                self.complain(
                    star, f"must name its parameters, not collect them in {quoted(star.arg)}", advice
                )
        defaults = zip(given.kwonlyargs, given.kw_defaults, strict=True)
        return {parameter.arg: default is None for parameter, default in defaults}


NOT_LITERAL = object()


def _literal(node: ast.expr) -> Any:
    """The value of a literal expression, or ``NOT_LITERAL``."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NOT_LITERAL


def _converted(name: str, table: Any) -> Metric:
    """A metric from ``"s"`` or ``{"unit": "s", ...}``; raises ``ValueError`` with what is wrong."""
    if isinstance(table, str):
        return metric(name, MetricTable(unit=table))
    if not isinstance(table, dict):
        raise ValueError('write its unit ("s"), or a table ({"unit": "token", "exact": True})')  # noqa: TRY004
    known = [field for field in MetricTable.__struct_encode_fields__ if field != "from"]
    for key in table:
        if key not in known:
            raise ValueError(f"unknown key {quoted(key)}{suggestion(str(key), known)}")
    try:
        return metric(name, msgspec.convert(table, MetricTable))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
