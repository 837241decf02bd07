"""Write the stubs of the public modules, in which type checkers and editors see the calls as they are at run time.

The keywords of a call, their types and defaults, are the fields of a class in options/, and their descriptions are in
keyword_docs.py. Both are put together when a module is imported, which static tools do not see. This writes the
resulting signatures and docstrings; all other public names are imported from the modules that define them.

It runs when a wheel is built, where nothing is installed yet: modules of the package that import other libraries are
read, not imported. Of a call its decorators, its signature and its docstring are evaluated, and the names in them.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import sys
import textwrap
import typing
from collections import abc, defaultdict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
if (ROOT / "tfrecord_io").exists():
    sys.path.insert(0, str(ROOT))

import tfrecord_io as tfr  # noqa: E402
from tfrecord_io import typing as own_types  # noqa: E402
from tfrecord_io.public_names import SHOWN_IN, homes  # noqa: E402

PACKAGE = Path(tfr.__file__).parent
_HEADER = '''"""{doc}"""

# Written by docs/reference/stub.py.
'''
STUBS = {"": "__init__", "formats": "formats", "io": "io", "train": "train"}  # public modules without code of their own
# These need no other libraries.
_IMPORTED = (
    "tfrecord_io.options",
    "tfrecord_io.keyword_docs",
    "tfrecord_io.typing",
    "tfrecord_io.format.format_registry",
)


class Names(dict[str, Any]):
    """The names of a module, evaluated when they are looked up.

    Attributes
    ----------
    imported : dict
        The module and the name, or the module and "", that each import statement at the top binds.
    """

    def __init__(self, module: str) -> None:
        super().__init__(__name__=f"stub of {module}", __builtins__=builtins)
        path = PACKAGE.joinpath(*module.split(".")[1:])
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        self.module, self.imported, self._nodes = (
            module,
            dict[str, tuple[str, str]](),
            defaultdict[str, list[Any]](list),
        )
        for statement in ast.parse(source.read_text("utf-8")).body:
            for node in statement.body if isinstance(statement, ast.If) else [statement]:
                if isinstance(node, ast.ImportFrom):
                    self.imported |= {a.asname or a.name: (str(node.module), a.name) for a in node.names}
                elif isinstance(node, ast.Import):
                    self.imported |= {a.asname or a.name: (a.name, "") for a in node.names}
                elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                    self._nodes[node.name].append(node)
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    self._nodes[node.targets[0].id].append(node)

    def has_keywords(self, name: str) -> bool:
        """Whether the signature or docstring of a function or class is not what its source shows."""
        decorators = [d for node in self._nodes[name] for d in getattr(node, "decorator_list", ())]
        makers = ("document_keywords", "sign_keywords", "list_formats")
        return any(maker in ast.unparse(decorator) for decorator in decorators for maker in makers)

    def __missing__(self, name: str) -> Any:
        if name in self.imported:
            module, attribute = self.imported[name]
            if module.startswith("tfrecord_io") and not module.startswith(_IMPORTED):
                self[name] = names_of(module)[attribute]
            else:
                self[name] = getattr(import_module(module), attribute) if attribute else import_module(module)
        elif name in self._nodes:
            self._run(*map(_without_body, self._nodes[name]))
        else:
            raise KeyError(name)
        return self[name]

    def _run(self, *nodes: Any) -> None:
        tree = ast.fix_missing_locations(ast.Module([*nodes], []))
        exec(compile(tree, self.module, "exec", __future__.annotations.compiler_flag), self)


names_of = cache(Names)


def _without_body(node: Any) -> Any:
    """A function or class with its docstring alone, the class also with its constructor; a class without bases."""
    if isinstance(node, ast.Assign):
        return node
    body = [ast.Expr(ast.Constant(ast.get_docstring(node, clean=False) or ""))]
    if isinstance(node, ast.ClassDef):
        inits = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        return ast.ClassDef(node.name, [], [], [*body, *map(_without_body, inits)], node.decorator_list)
    return ast.FunctionDef(node.name, node.args, body, node.decorator_list, node.returns)


class _Stub:
    """The text of the stub of a public module, and the imports that it needs."""

    def __init__(self, shown_in: str) -> None:
        self.shown_in, self.homes = shown_in, homes(shown_in)
        self.imports: dict[str, set[str]] = defaultdict(set)
        self.functions: list[str] = []

    def add(self, name: str) -> None:
        module = self.homes[name]
        names = names_of(module)
        if not names.has_keywords(name):
            self.imports[module].add(f"{name} as {name}")
        elif inspect.isclass(names[name]):
            self.imports[module].add(f"{name} as _{name}")
            self.functions.append(self._class(names[name], names))
        else:
            self.functions.append(self._functions(names[name], names))

    def _functions(self, function: Callable[..., Any], names: Names) -> str:
        """The function, or all its overloads, whose parameters replace those of its signature."""
        signature = inspect.signature(function)
        overloads = [inspect.signature(overload) for overload in typing.get_overloads(function)]
        signatures = [_merged(signature, overload) for overload in overloads] or [signature]
        if overloads:
            self.imports["typing"].add("overload")
        head = f"{'@overload' + chr(10) if overloads else ''}def {function.__name__}"
        return "\n".join(f"{head}{self._signature(each, names)}:\n{_docstring(function)}\n" for each in signatures)

    def _class(self, cls: Any, names: Names) -> str:
        """A class whose constructor has keywords: for static tools, a subclass of that in its module."""
        line = f"def __init__{self._signature(inspect.signature(cls.__init__), names)}: ..."
        return f"class {cls.__name__}(_{cls.__name__}):\n{_docstring(cls)}\n{textwrap.indent(line, '    ')}\n"

    def _signature(self, signature: inspect.Signature, names: Names) -> str:
        lines, marked = [], False
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and not marked:
                lines.append("*")
                marked = True
            hint = "" if parameter.name == "self" else f": {self._annotation(parameter.annotation, names)}"
            default = "" if parameter.default is parameter.empty else f" = {_literal(parameter.default)}"
            star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
            lines.append(f"{star}{parameter.name}{hint}{default}")
            marked = marked or bool(star)
        parameters = "".join(f"    {line},\n" for line in lines)
        return f"(\n{parameters}) -> {self._annotation(signature.return_annotation, names)}"

    def _annotation(self, text: str, names: Names) -> str:
        """An annotation without the prefixes of modules: editors would offer imported modules as public names."""
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = names.imported[node.value.id][0]
                name = self._name(node.attr, module, names)
                self.imports[module].add(node.attr if name == node.attr else f"{node.attr} as {name}")
                text = text.replace(f"{node.value.id}.{node.attr}", name)
            elif isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                self._import(node.id, names)
        return text

    def _name(self, name: str, module: str, names: Names) -> str:
        """What a name of another library is called here: another one where two libraries, or we, have the name.

        Editors do not offer it.
        """
        taken = name in self.homes or any(name in known for home, known in self.imports.items() if home != module)
        return f"_{names.module.rpartition('.')[2].title()}{name}" if taken else name

    def _import(self, name: str, names: Names) -> None:
        if name in self.homes or names.imported.get(name, ("", "name"))[1] == "":
            return
        if name in vars(own_types) and name not in {*abc.__all__, *typing.__all__}:
            module = own_types.__name__
        elif name in abc.__all__:
            module = "collections.abc"
        elif name in typing.__all__:
            module = "typing"
        else:
            module = names.imported.get(name, (names.module, ""))[0]
        self.imports[module].add(name)

    def text(self) -> str:
        module = import_module(f"tfrecord_io.{self.shown_in}") if self.shown_in else tfr
        lines = [_HEADER.format(doc=(module.__doc__ or "").strip() + "\n")]
        if not self.shown_in:
            self.imports["tfrecord_io"].update(f"{name} as {name}" for name in SHOWN_IN)
        groups: list[list[str]] = [[], [], []]
        for module, names in sorted(self.imports.items()):
            top = module.partition(".")[0]
            group = groups[2 if top == "tfrecord_io" else 0 if top in sys.stdlib_module_names else 1]
            group.append(f"from {module} import {', '.join(sorted(names))}\n")
        lines += ["".join(group) for group in groups if group]
        lines.append(f"{'' if self.shown_in else '__version__: str'}\n__all__ = {[*self.homes]}\n")
        return "\n".join([*lines, *self.functions])


def _docstring(item: Any) -> str:
    doc = inspect.cleandoc(item.__doc__ or "").replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return textwrap.indent(f'"""{doc}\n"""', "    ")


def _merged(signature: inspect.Signature, overload: inspect.Signature) -> inspect.Signature:
    """The signature with the parameters that an overload states, and with what it returns."""
    stated = {name: p for name, p in overload.parameters.items() if p.kind is not p.VAR_KEYWORD}
    parameters = [stated.get(name, parameter) for name, parameter in signature.parameters.items()]
    return signature.replace(parameters=parameters, return_annotation=overload.return_annotation)


def _literal(value: object) -> str:
    """A default as it would be written in code: text in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def stub(shown_in: str) -> str:
    """The text of the stub of a public module; "" is the package."""
    result = _Stub(shown_in)
    for name in result.homes:
        result.add(name)
    return result.text()


if __name__ == "__main__":
    for shown_in, file in STUBS.items():
        (PACKAGE / f"{file}.pyi").write_text(stub(shown_in), encoding="utf-8")
