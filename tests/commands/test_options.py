"""Commands have one shape, and options become flags."""

import dataclasses
import inspect
import pathlib
import typing

from absl import flags
import pytest

from official.common import flags as tfm_flags
from swe_tf import cli
from swe_tf import commands
from swe_tf import errors
from swe_tf.commands import options
from swe_tf.commands import stock_options

_NO_COMMANDS = {"__init__", "early", "names", "options", "stock_options"}
_MODULES = sorted(
  path.stem
  for path in pathlib.Path(commands.__file__).parent.glob("*.py")
  if path.stem not in _NO_COMMANDS
)


def test_every_module_is_a_command():
  assert sorted(name for name, _ in cli.COMMANDS.values()) == _MODULES


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_shape(command):
  module = cli.load(command)
  assert f"swe {command}" in inspect.getdoc(module), "an example"
  assert dataclasses.is_dataclass(module.Options)
  assert module.Options.__dataclass_params__.frozen
  (parameter,) = inspect.signature(module.run).parameters.values()
  assert parameter.annotation is module.Options
  returned = typing.get_type_hints(module.run)["return"]
  assert returned in (int, type(None), int | None)
  for field in dataclasses.fields(module.Options):
    assert field.metadata["help"].endswith("."), field.name


def test_the_flags_of_train_are_those_of_the_stock_driver():
  if "experiment" not in flags.FLAGS:
    tfm_flags.define_flags()
  stock = flags.FLAGS.flags_by_module_dict()["official.common.flags"]
  ours = {f.name for f in dataclasses.fields(stock_options.StockOptions)}
  assert ours - {flag.name for flag in stock} == {
    "pretrain_steps",
    "enable_async_checkpointing",
  }, "those two are in official.nlp.train"
  assert {flag.name for flag in stock} <= ours
  mode = flags.FLAGS["mode"].parser.enum_values
  assert tuple(mode) == stock_options.MODES


@dataclasses.dataclass(frozen=True)
class _Options:
  """One field of every kind."""

  study: str = options.argument("A file.")
  output_dir: str = options.flag("A directory.")
  jobs: int = options.flag("A number.", 1, lower_bound=1)
  rate: float = options.flag("A part.", 0.5, lower_bound=0.0, upper_bound=1.0)
  dry_run: bool = options.flag("Whether.", False)
  seeds: int | None = options.flag("A number, or none.", None)
  init: str | None = options.flag("One of two.", None, choices=("a", "b"))
  rates: tuple[float, ...] = options.flag("Numbers.", ())
  names: tuple[str, ...] = options.flag("Names.", ("x",))
  bindings: tuple[str, ...] = options.flag("With commas.", (), repeated=True)


def _parse(*arguments, options_cls=_Options):
  values = flags.FlagValues()
  options.define_flags(options_cls, values)
  return options.from_flags(options_cls, values, values(["", *arguments])[1:])


def test_values():
  assert _parse("s.yaml", "--output_dir=d") == _Options(
    study="s.yaml", output_dir="d"
  )
  assert _parse(
    "--output_dir",
    "d",
    "--jobs=2",
    "--rate=1",
    "--dry_run",
    "--seeds=3",
    "--init=b",
    "--rates=1e-5, 2",
    "--names=",
    "--bindings=f(1, 2)",
    "--bindings=g",
    "s.yaml",
  ) == _Options(
    study="s.yaml",
    output_dir="d",
    jobs=2,
    rate=1.0,
    dry_run=True,
    seeds=3,
    init="b",
    rates=(1e-5, 2.0),
    names=(),
    bindings=("f(1, 2)", "g"),
  )


@pytest.mark.parametrize(
  "arguments, message",
  [
    ([], "STUDY is missing: A file."),
    (["s"], "--output_dir is missing; see --help."),
    (["s", "--output_dir="], "--output_dir is missing"),
    (["s", "t", "--output_dir=d"], "unexpected argument 't'"),
  ],
)
def test_what_is_missing_or_too_much(arguments, message):
  with pytest.raises(errors.UsageError, match=message):
    _parse(*arguments)


@pytest.mark.parametrize(
  "argument, message",
  [
    ("--jobs=two", "'two' is not an integer of at least 1"),
    ("--jobs=0", "'0' is not an integer of at least 1"),
    ("--rate=nan", "'nan' is not a number of at least 0.0 and at most 1.0"),
    ("--dry_run=maybe", "'maybe' is not true or false"),
    ("--init=c", "'c' is not one of a, b"),
    ("--rates=1,x", "'x' is not a number"),
  ],
)
def test_values_that_are_none(argument, message):
  with pytest.raises(flags.IllegalFlagValueError, match=message):
    _parse("s", "--output_dir=d", argument)


def test_all_arguments_of_a_tuple():
  @dataclasses.dataclass(frozen=True)
  class Many:
    names: tuple[str, ...] = options.argument("Names.", choices=("a", "b"))

  assert _parse("a", "b", options_cls=Many) == Many(names=("a", "b"))
  with pytest.raises(errors.UsageError, match="NAMES: 'c' is not one of a, b."):
    _parse("a", "c", options_cls=Many)
  with pytest.raises(errors.UsageError, match="NAMES is missing: one of a, b."):
    _parse(options_cls=Many)
