"""Options of a command: a frozen dataclass whose fields are absl flags.

A command is a module with a docstring, which is its help, and

    @dataclasses.dataclass(frozen=True)
    class Options:
      study: str = opt.argument("The study, a YAML file.")
      output_dir: str = opt.flag("Directory for the runs.")
      jobs: int = opt.flag("Runs at a time.", 1, least=1)

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
from swe_tf import library

REQUIRED: Any = dataclasses.MISSING

_BEYOND = {int: 2**31, float: float("inf")}
_NAMES = {int: "an integer", float: "a number", bool: "true or false"}


def flag(
  help: str,
  default: Any = REQUIRED,
  *,
  choices: Sequence[str] = (),
  least: float | None = None,
  most: float | None = None,
  repeated: bool = False,
  positional: bool = False,
) -> Any:
  """Returns a keyword-only dataclass field that is the flag of the same name.

  `choices` are the allowed values, `least` and `most` bound a number. Of a
  tuple that is `repeated`, each `--name=value` adds one value, commas and all.
  """
  return dataclasses.field(default=default, kw_only=True, metadata=locals())


def argument(help: str, default: Any = REQUIRED, **limits: Any) -> Any:
  """Returns a field for an argument, or for all arguments if it is a tuple."""
  return flag(help, default, positional=True, **limits)


def jobs() -> Any:
  return flag("Number of parallel runs; they split the CPU cores.", 1, least=1)


def lower_case() -> Any:
  return flag("Lower-case the text, for an uncased vocabulary.", True)


@dataclasses.dataclass(frozen=True)
class ManyRuns:
  """The flags of commands that make many runs."""

  output_dir: str = flag("Directory for the runs.")
  jobs: int = jobs()
  ray_address: str = flag(
    "HOST:PORT of a Ray cluster; --jobs then counts the runs per machine.", ""
  )
  params_override: str = flag(
    "Overrides for every run, as for swe train: YAML, or a.b=1,c.d=2.", ""
  )


@dataclasses.dataclass(frozen=True)
class Records:
  """The flags of commands that prepare data for fine-tuning."""

  vocab: str = flag("Vocabulary file, of word pieces or characters.")
  output_dir: str = flag("Directory for TFRecords, vocab.txt, manifest.json.")
  lower_case: bool = lower_case()


class _Parser(flags.ArgumentParser):
  """Parses the value of a field."""

  def __init__(self, field: dataclasses.Field[Any], hint: Any):
    about = self._about = field.metadata
    inner = [each for each in typing.get_args(hint) if each is not type(None)]
    self.kind: Callable[[str], Any] = inner[0] if inner else hint
    self.is_tuple = typing.get_origin(hint) is tuple
    self._splits = not (about["repeated"] or about["positional"])
    expected = _NAMES.get(self.kind, "")
    if about["choices"]:
      expected = "one of " + ", ".join(about["choices"])
    if about["least"] is not None:
      expected += f" of at least {about['least']}"
    if about["most"] is not None:
      expected += f" and at most {about['most']}"
    self.syntactic_help = self._expected = expected
    if self.is_tuple and self._splits:
      self.syntactic_help = f"{expected}, separated by commas".lstrip(", ")

  def _parse_one(self, text: str) -> Any:
    if self.kind is str and not self._about["positional"]:
      text = library.find(text)  # The name of a file of the package.
    choices, least = self._about["choices"], self._about["least"]
    most = self._about["most"]
    convert = flags.BooleanParser().parse if self.kind is bool else self.kind
    try:
      value = convert(text)
      # This way round NaN does not fit.
      fits = (
        (not choices or value in choices)
        and (least is None or value >= least)
        and (most is None or value <= most)
        # What computes with it has 32 bits.
        and (self.kind not in (int, float) or abs(value) < _BEYOND[self.kind])
      )
    except ValueError:
      fits = False
    if not fits:
      near = errors.nearest(text, choices, "")
      shown = f"{text!r} ({near})" if near else repr(text)
      raise ValueError(f"{shown} is not {self._expected}")
    return value

  def parse(self, argument: Any) -> Any:
    """Parses a string; a default is a value already and is returned as is."""
    if not isinstance(argument, str):
      return argument
    if not (self.is_tuple and self._splits):
      return self._parse_one(argument)
    parts = (part.strip() for part in argument.split(","))
    return tuple(self._parse_one(part) for part in parts if part)


def _fields(
  options_cls: type,
) -> Iterator[tuple[dataclasses.Field[Any], _Parser]]:
  hints = typing.get_type_hints(options_cls)
  for field in dataclasses.fields(options_cls):
    yield field, _Parser(field, hints[field.name])


def define_flags(
  options_cls: type, values: flags.FlagValues, title: str = "flags"
) -> None:
  """Defines a command's flags in `values`, below `title` in its help."""
  for field, parser in _fields(options_cls):
    name, about = field.name, field.metadata
    if about["positional"]:
      continue
    flag_cls = flags.MultiFlag if about["repeated"] else flags.Flag
    # absl has no empty list, and --help need not show an empty string.
    default = None if field.default in (REQUIRED, (), "") else field.default
    is_bool = parser.kind is bool
    made = flag_cls(parser, None, name, default, about["help"], boolean=is_bool)
    flags.DEFINE_flag(made, values, title)


def from_flags(
  options_cls: type, values: flags.FlagValues, arguments: Sequence[str]
) -> Any:
  """Builds the Options from parsed flags and the remaining arguments."""
  rest = list(arguments)
  found: dict[str, Any] = {}
  for field, parser in _fields(options_cls):
    if field.metadata["positional"]:
      label = field.name.upper()
      taken = rest[:] if parser.is_tuple else rest[:1]
      del rest[: len(taken)]
      try:
        parsed = tuple(map(parser.parse, taken))
      except ValueError as error:
        raise errors.UsageError(f"{label}: {error}.") from error
      value = parsed if parser.is_tuple else next(iter(parsed), None)
    else:
      label, value = f"--{field.name}", values[field.name].value
    if field.default is REQUIRED and value in (None, "", ()):
      what = parser.syntactic_help or field.metadata["help"].rstrip(".")
      raise errors.UsageError(f"{label} is missing: {what}.")
    if value is None:
      value = typing.cast(Any, field.default)
    found[field.name] = tuple(value) if parser.is_tuple else value
  if rest:
    raise errors.UsageError(
      f"unexpected argument {rest[0]!r}; flags are --name=value."
    )
  return options_cls(**found)
