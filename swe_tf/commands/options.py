"""Options of a command: a frozen dataclass whose fields are absl flags.

A command is a module with a docstring, which is its help, and

    @dataclasses.dataclass(frozen=True)
    class Options:
      study: str = options.argument("The study, a YAML file.")
      output_dir: str = options.flag("Directory for the runs.")
      jobs: int = options.flag("Runs at a time.", 1, lower_bound=1)

    def run(options: Options) -> int | None:
      ...

A field is a str, int, float or bool, one of these or None, or a tuple of one
of these, which is a comma-separated list. `cli` turns the command line into
the Options; `__post_init__` may check how they fit together.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import typing
from typing import Any

from absl import flags

from swe_tf import errors

REQUIRED: Any = dataclasses.MISSING

_NAMES = {int: "an integer", float: "a number", bool: "true or false"}
_BOOLS = dict.fromkeys(("true", "t", "1"), True) | dict.fromkeys(
  ("false", "f", "0"), False
)


def flag(
  help: str,
  default: Any = REQUIRED,
  *,
  choices: Sequence[str] = (),
  lower_bound: float | None = None,
  upper_bound: float | None = None,
  repeated: bool = False,
) -> Any:
  """Returns a dataclass field that is the flag of the same name.

  Args:
    help: A sentence for `--help`.
    default: The value if the flag is not given.
    choices: The allowed values; empty for any.
    lower_bound: The smallest allowed number.
    upper_bound: The largest allowed number.
    repeated: For a tuple: each `--name=value` adds one value, commas and all.

  Returns:
    The field, keyword-only.
  """
  metadata = {
    "help": help,
    "choices": tuple(choices),
    "lower_bound": lower_bound,
    "upper_bound": upper_bound,
    "repeated": repeated,
    "positional": False,
  }
  return dataclasses.field(default=default, kw_only=True, metadata=metadata)


def argument(
  help: str, default: Any = REQUIRED, *, choices: Sequence[str] = ()
) -> Any:
  """Returns a field for an argument, or for all arguments if it is a tuple."""
  field = flag(help, default, choices=choices)
  field.metadata = field.metadata | {"positional": True}
  return field


class _Parser(flags.ArgumentParser):
  """Parses the value of a field."""

  def __init__(self, field: dataclasses.Field[Any], hint: Any):
    inner = [
      each
      for each in typing.get_args(hint)
      if each not in (type(None), Ellipsis)
    ]
    self.kind: Callable[[str], Any] = inner[0] if inner else hint
    self.is_tuple = typing.get_origin(hint) is tuple
    self.is_list = self.is_tuple and not (
      field.metadata["repeated"] or field.metadata["positional"]
    )
    self._choices = field.metadata["choices"]
    self._least = field.metadata["lower_bound"]
    self._most = field.metadata["upper_bound"]
    expected = _NAMES.get(self.kind, "")
    if self._choices:
      expected = "one of " + ", ".join(self._choices)
    if self._least is not None:
      expected += f" of at least {self._least}"
    if self._most is not None:
      expected += f" and at most {self._most}"
    self._expected = expected
    lists = "separated by commas" if self.is_list else ""
    self.syntactic_help = ", ".join(filter(None, (expected, lists)))

  def _parse_one(self, text: str) -> Any:
    try:
      value = _BOOLS[text.lower()] if self.kind is bool else self.kind(text)
      fits = (
        (not self._choices or value in self._choices)
        and (self._least is None or value >= self._least)
        and (self._most is None or value <= self._most)
      )
    except (KeyError, ValueError):
      fits = False
    if not fits:
      near = errors.nearest(text, self._choices, "")
      shown = f"{text!r} ({near})" if near else repr(text)
      raise ValueError(f"{shown} is not {self._expected}")
    return value

  def parse(self, argument: Any) -> Any:
    """Parses a string; a default is a value already and is returned as is."""
    if not isinstance(argument, str):
      return argument
    if not self.is_list:
      return self._parse_one(argument)
    parts = (part.strip() for part in argument.split(","))
    return tuple(self._parse_one(part) for part in parts if part)


class _Serializer(flags.ArgumentSerializer):
  def serialize(self, value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _fields(
  options_cls: type,
) -> Iterator[tuple[dataclasses.Field[Any], _Parser]]:
  hints = typing.get_type_hints(options_cls)
  for field in dataclasses.fields(options_cls):
    yield field, _Parser(field, hints[field.name])


def flag_names(options_cls: type) -> list[str]:
  """Returns the names of a command's flags."""
  fields = dataclasses.fields(options_cls)
  return [field.name for field in fields if not field.metadata["positional"]]


def define_flags(
  options_cls: type, values: flags.FlagValues, title: str = "flags"
) -> None:
  """Defines the flags of a command.

  Args:
    options_cls: The command's Options.
    values: Where to define them.
    title: The heading above them in `values.module_help(title)`.
  """
  for field, parser in _fields(options_cls):
    if field.metadata["positional"]:
      continue
    default = None if field.default is REQUIRED else field.default
    flag_cls = flags.MultiFlag if field.metadata["repeated"] else flags.Flag
    flags.DEFINE_flag(
      flag_cls(
        parser,
        _Serializer(),
        field.name,
        # absl has no empty list, and --help need not show an empty string.
        None if default in ((), "") else default,
        field.metadata["help"],
        boolean=parser.kind is bool,
      ),
      values,
      title,
    )


def _positional(
  field: dataclasses.Field[Any], parser: _Parser, arguments: list[str]
) -> Any:
  """Removes the field's value from `arguments` and returns it."""
  name = field.name.upper()
  if not arguments:
    if field.default is not REQUIRED:
      return field.default
    raise errors.UsageError(
      f"{name} is missing: "
      + (parser.syntactic_help or field.metadata["help"].rstrip("."))
      + "."
    )
  taken = arguments[:] if parser.is_tuple else arguments[:1]
  del arguments[: len(taken)]
  try:
    parsed = tuple(parser._parse_one(text) for text in taken)
  except ValueError as error:
    raise errors.UsageError(f"{name}: {error}.") from error
  return parsed if parser.is_tuple else parsed[0]


def from_flags(
  options_cls: type, values: flags.FlagValues, arguments: Sequence[str]
) -> Any:
  """Builds the Options from a command line.

  Args:
    options_cls: The command's Options.
    values: The parsed flags.
    arguments: The rest of the command line, without flags.

  Returns:
    An instance of `options_cls`.

  Raises:
    UsageError: If a flag or argument is missing, or there is one too many.
  """
  rest = list(arguments)
  found = {}
  for field, parser in _fields(options_cls):
    if field.metadata["positional"]:
      found[field.name] = _positional(field, parser, rest)
      continue
    value = values[field.name].value
    if field.default is REQUIRED and value in (None, "", ()):
      raise errors.UsageError(f"--{field.name} is missing; see --help.")
    if value is None:
      value = field.default
    found[field.name] = tuple(value) if parser.is_tuple else value
  if rest:
    raise errors.UsageError(
      f"unexpected argument {rest[0]!r}; flags are --name=value."
    )
  return options_cls(**found)
