"""Reads Python from stdin and prints as JSON what it imports when it runs. Runs nothing of it."""

import ast
import json
import sys

MISSING = {'ImportError', 'ModuleNotFoundError', 'Exception', 'BaseException'}


def is_optional(node):
    """A try that goes on when there is no such module."""

    def names(kind):
        if kind is None:
            return MISSING
        parts = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        return {part.id for part in parts if isinstance(part, ast.Name)}

    return any(names(handler.type) & MISSING for handler in node.handlers)


def is_for_types(node):
    test = node.test
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, 'id', None)
    return name == 'TYPE_CHECKING'


def is_import_call(node):
    called = node.func
    if isinstance(called, ast.Attribute):
        return called.attr == 'import_module' and getattr(called.value, 'id', None) == 'importlib'
    return isinstance(called, ast.Name) and called.id in ('__import__', 'import_module')


def find(tree):
    modules, unreadable = {}, []
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules.setdefault(alias.name.split('.')[0], node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.setdefault(node.module.split('.')[0], node.lineno)
        elif isinstance(node, ast.Call) and is_import_call(node) and node.args:
            name = node.args[0]
            if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
                unreadable.append(node.lineno)
            elif not name.value.startswith('.'):
                modules.setdefault(name.value.split('.')[0], node.lineno)
        children = ast.iter_child_nodes(node)
        if isinstance(node, ast.Try) and is_optional(node):
            children = node.handlers + node.orelse + node.finalbody
        elif isinstance(node, ast.If) and is_for_types(node):
            children = node.orelse
        left.extend(children)
    known = sys.stdlib_module_names
    found = [[name, line] for name, line in modules.items() if name not in known]
    return {'modules': found, 'unreadable': unreadable[:10]}


def main():
    try:
        tree = ast.parse(sys.stdin.buffer.read())
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, 'lineno', None), getattr(error, 'offset', None)
        message = getattr(error, 'msg', None) or str(error)
        return {'problem': {'message': message, 'line': line or 1, 'column': column or 1}}
    except (MemoryError, RecursionError):
        return {'problem': {'message': 'the code is too deeply nested to be read', 'line': 1, 'column': 1}}
    return find(tree)


print(json.dumps(main()))
