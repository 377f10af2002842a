"""Calls: what a caller hands in is checked at the border, so that whatever he got wrong is a Problem."""

from __future__ import annotations

import inspect
import operator
import sys
import types
import typing
from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Real
from types import SimpleNamespace
from typing import Any, Literal, ParamSpec, TypeVar, Union

from elboroom.core.problem import Problem, slip
from elboroom.core.tongue import spoken

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


class Unfit(Exception):
    """A value that is not of the kind that was asked for."""


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """What the arguments of a function are to be; what it returns may be a name that only a type checker knows."""
    said = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    holder = SimpleNamespace(__annotations__=said, __module__=function.__module__)
    return typing.get_type_hints(holder, sys.modules[function.__module__].__dict__)


def asked(function: Callable[P, R]) -> Callable[P, R]:
    """A function that a user calls: arguments are of the kinds that its signature says, or it is a Problem.

    Whole numbers become int and reals float, of whatever library they are. What the machine cannot do (memory, files)
    is a Problem too; an error of our own stays what it is. Options are arguments in its messages, and flags at a command
    line.
    """
    signature = inspect.signature(function)
    hints: dict[str, Any] = {}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not hints:
            hints.update({"return": None} | _hints(function))
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise Problem(f"{function.__name__}: {error}") from None
        for name, value in bound.arguments.items():
            plain = signature.parameters[name].kind not in (
                inspect.Parameter.VAR_KEYWORD,
                inspect.Parameter.VAR_POSITIONAL,
            )
            if plain and name in hints:
                try:
                    bound.arguments[name] = fitted(value, hints[name])
                except Unfit:
                    shown = " ".join(repr(value).split())
                    shown = shown if len(shown) < 60 else type(value).__name__
                    raise Problem(f"{function.__name__}: {name} must be {_said(hints[name])}, not {shown}") from None
        try:
            return function(*bound.args, **bound.kwargs)
        except Exception as error:
            problem = slip(error)
            if problem is None:
                raise
            problem.args = (spoken(str(problem)),)
            if problem is error:
                raise
            raise problem from error

    return call


def asked_of(cls: C) -> C:
    """A class whose public methods a user calls."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(cls, name, asked(method))
    return cls


def fitted(value: Any, hint: Any) -> Any:
    """A value as a type asks for it, or Unfit; what a type says that cannot be asked of a value is taken as it is."""
    origin = typing.get_origin(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        for part in typing.get_args(hint):
            try:
                return fitted(value, part)
            except Unfit:
                continue
        raise Unfit
    if origin is Literal:
        if isinstance(value, str) and value in typing.get_args(hint):
            return value
        raise Unfit
    if hint is int:
        return _whole(value)
    if hint is float:
        if isinstance(value, Real) and not isinstance(value, bool):
            return float(value)
        raise Unfit
    if origin is list and typing.get_args(hint) == (int,):
        try:
            return [_whole(part) for part in value]
        except TypeError:
            raise Unfit from None
    if isinstance(origin, type):
        if origin is Sequence and typing.get_args(hint) == (str,):
            if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
                return value
            raise Unfit
        hint, origin = origin, None
    if hint is None or hint is type(None):
        hint = type(None)
    elif not isinstance(hint, type) or origin is not None or getattr(hint, "_is_protocol", False):
        return value
    if not isinstance(value, hint):
        raise Unfit
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise Unfit
    try:
        return operator.index(value)
    except TypeError:
        raise Unfit from None


def _said(hint: Any) -> str:
    """A type in words."""
    words = {int: "a whole number", float: "a number", str: "text", bool: "True or False", type(None): "None"}
    if typing.get_origin(hint) in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_said(part) for part in typing.get_args(hint)))
    if typing.get_origin(hint) is Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    if typing.get_origin(hint) is list:
        return "a list of whole numbers"
    return words.get(hint, f"a {getattr(hint, '__name__', hint)}")
