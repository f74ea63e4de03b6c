"""Commands whose options are fields of dataclasses, so that each option is declared once.

A field is annotated with ``Annotated[type, typer.Option(...)]``, as a parameter of a Typer command is. A field whose
type is such a dataclass stands for all options of it.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple, TypeVar, get_args

T = TypeVar("T")


class Before(NamedTuple):
    """Part of the annotation of a field: the help lists its option before another one, if the command has that.

    Attributes:
        name: Name of the field or parameter of the other option.
    """

    name: str


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that its parameters stand for.

    A parameter whose type is a dataclass is replaced by the options of its fields; the command receives an instance of
    the dataclass. Other parameters are unchanged. Options are in the order of parameters and fields, see
    :class:`Before`.

    Args:
        command: The command, for Typer.

    Raises:
        TypeError: Two options have the same name.

    Examples:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Output:
        ...     out: str
        ...     force: bool = False
        >>> @with_settings
        ... def export(output: Output, as_json: bool = False) -> None:
        ...     print(output, as_json)
        >>> print(inspect.signature(export))
        (*, out: str, force: bool = False, as_json: bool = False) -> None
        >>> export(out="results", force=True, as_json=False)
        Output(out='results', force=True) False
    """
    signature = inspect.signature(command)
    own = list(signature.parameters.values())
    options = _in_order([option for parameter in own for option in _options_of(parameter)])
    names = [option.name for option in options]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise TypeError(f"{command.__name__} declares the options {', '.join(repeated)} more than once")

    @wraps(command)
    def with_options(**given: Any) -> None:
        command(**{parameter.name: _value(parameter.annotation, parameter.name, given) for parameter in own})

    with_options.__annotations__ = {option.name: option.annotation for option in options}
    with_options.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]  # read by inspect
    del with_options.__wrapped__  # its signature is another one
    return with_options


def settings_of(kind: type[T], /, **values: Any) -> T:
    """Settings from the values of their options by name; options that are left out have their defaults.

    Raises:
        TypeError: There is no such option, or a required one is missing.

    Examples:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Costs:
        ...     label_cost: float = 1.0
        >>> @dataclasses.dataclass(frozen=True)
        ... class Project:
        ...     data: str
        ...     costs: Costs = Costs()
        >>> settings_of(Project, data="mails.csv", label_cost=2.0)
        Project(data='mails.csv', costs=Costs(label_cost=2.0))
    """
    if unknown := sorted(values.keys() - set(option_names(kind))):
        raise TypeError(f"{kind.__name__} has no option {', '.join(unknown)}")
    made: T = _settings(kind, values)
    return made


def option_names(kind: type[Any]) -> list[str]:
    """Names of all options of settings, in the order of the fields.

    Args:
        kind: A dataclass.
    """
    return [option.name for option in _fields_as_options(kind)]


def _options_of(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if dataclasses.is_dataclass(parameter.annotation):
        yield from _fields_as_options(parameter.annotation)
    else:
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _fields_as_options(kind: Any) -> Iterator[inspect.Parameter]:
    for field in dataclasses.fields(kind):
        required = field.default is dataclasses.MISSING
        option = inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else field.default,
            annotation=field.type,
        )
        yield from _options_of(option)


def _in_order(options: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """The options as the help lists them."""
    ordered = list(options)
    for option in options:
        names = [other.name for other in ordered]
        place = next((part.name for part in get_args(option.annotation) if isinstance(part, Before)), None)
        if place in names:
            ordered.remove(option)
            ordered.insert([other.name for other in ordered].index(str(place)), option)
    return ordered


def _value(kind: Any, name: str, values: dict[str, Any]) -> Any:
    return _settings(kind, values) if dataclasses.is_dataclass(kind) else values[name]


def _settings(kind: Any, values: dict[str, Any]) -> Any:
    return kind(
        **{
            field.name: _value(field.type, field.name, values)
            for field in dataclasses.fields(kind)
            if field.name in values or dataclasses.is_dataclass(field.type)
        }
    )
