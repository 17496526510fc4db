"""Gin files and bindings, read without TensorFlow.

Gin itself parses them. Names that it would look up in Model Garden's modules
are looked up in `fields.json` instead; a file that imports other modules may
bind names that are not in there.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import os
import tokenize
from typing import Any

from gin import config_parser

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf.configs import fields

# Binding one of these decides in code what is shared, whatever the config says.
_CODE = ("SharedWeightsTrainer", "make_sharing_plan", "find_repeated_blocks")
_TABLES = ("sharing", "growth")


@dataclasses.dataclass(frozen=True)
class Reference:
  """A configurable or a macro that stands for a value."""

  name: str


@dataclasses.dataclass(frozen=True)
class GinText:
  """The content of gin files and bindings.

  Attributes:
    overrides: Their bindings of `task.sharing` and `task.growth`, as overrides.
    decides_sharing: Whether code or macros decide what is shared.
    imports_others: Whether they import modules from outside this package.
  """

  overrides: Mapping[str, Any]
  decides_sharing: bool
  imports_others: bool


class _Delegate(config_parser.ParserDelegate):
  def configurable_reference(self, scoped_configurable_name, evaluate):
    del evaluate
    return Reference(scoped_configurable_name.split("/")[-1])

  def macro(self, macro_name):
    return Reference(f"%{macro_name}")


def read(gin_files: Sequence[str], gin_params: Sequence[str]) -> GinText:
  """Reads and checks gin files and bindings.

  Args:
    gin_files: The files.
    gin_params: The bindings.

  Raises:
    UsageError: If one cannot be read, or binds a name that does not exist.
  """
  found: list[tuple[str, Any]] = []
  for path in gin_files:
    found += _statements_of_file(path, "--gin_file")
  found += _statements("\n".join(gin_params), "--gin_params")
  imports = [
    statement.module
    for _, statement in found
    if isinstance(statement, config_parser.ImportStatement)
  ]
  bindings = [
    (source, statement)
    for source, statement in found
    if isinstance(statement, config_parser.BindingStatement)
  ]
  others = any(module.split(".")[0] != "swe_tf" for module in imports)
  task: dict[str, Any] = {}
  decides = False
  for source, binding in bindings:
    if not others and binding.arg_name:
      _check_binding(source, binding)
    last = binding.selector.split(".")[-1]
    if last in _TABLES and "Reference(" not in repr(binding.value):
      task.setdefault(last, {})[binding.arg_name] = binding.value
    else:
      decides |= last in (*_TABLES, *_CODE)
  return GinText({"task": task} if task else {}, decides, others)


def _statements_of_file(path: str, flag: str) -> list[tuple[str, Any]]:
  if not files.is_url(path) and not os.path.isfile(path):
    hint = errors.nearest(path, library.names(), "check the path.", 0.8)
    raise errors.UsageError(f"{flag}={path}: there is no such file; {hint}")
  found: list[tuple[str, Any]] = []
  for source, statement in _statements(files.read_text(path), path):
    if isinstance(statement, config_parser.IncludeStatement):
      found += _statements_of_file(statement.filename, f"{path}: include")
    else:
      found.append((source, statement))
  return found


def _statements(text: str, source: str) -> Iterator[tuple[str, Any]]:
  try:
    for statement in config_parser.ConfigParser(text, _Delegate()):
      yield source, statement
  except (SyntaxError, ValueError, tokenize.TokenError) as error:
    line = getattr(error, "lineno", None)
    place = f"{source}:{line}" if line and source[0] != "-" else source
    wrong = (getattr(error, "text", None) or "").strip()
    shown = f" ({wrong})" if wrong else ""
    # The rest of `ast`'s message is the address of an object.
    reason = errors.first_line(error).partition(" on line")[0]
    raise errors.UsageError(
      f"{place}: {reason}{shown}; a binding is NAME.PARAMETER "
      "= VALUE, with text in quotes."
    ) from error


def _check_binding(source: str, binding: Any) -> None:
  parameters = _parameters(binding.selector, source)
  if parameters is not None and binding.arg_name not in parameters:
    hint = errors.nearest(
      binding.arg_name, parameters, f"it has {', '.join(parameters)}."
    )
    raise errors.UsageError(
      f"{source}: {binding.selector} has no parameter {binding.arg_name!r}; "
      f"{hint}"
    )
  if isinstance(binding.value, Reference) and binding.value.name[0] != "%":
    _parameters(binding.value.name, source)


def _parameters(selector: str, source: str) -> Sequence[str] | None:
  """Returns the parameters of a configurable, or None if it takes any."""
  known = fields.table()["gin"]
  matches = [name for name in known if f".{name}".endswith(f".{selector}")]
  if not matches:
    short = [name.split(".")[-1] for name in known]
    hint = errors.nearest(
      selector.split(".")[-1],
      short,
      "import the module that has it, in a gin file.",
    )
    raise errors.UsageError(f"{source}: gin does not know {selector}; {hint}")
  table = selector.split(".")[-1]
  if table in _TABLES:
    return list(fields.sharing_fields(table))
  return known[matches[0]]
