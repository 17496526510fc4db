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
from swe_tf.commands import options as opt
from swe_tf.commands import stock_options
from swe_tf.commands import train


def test_every_module_is_a_command():
  modules = pathlib.Path(commands.__file__).parent.glob("*.py")
  names = {path.stem for path in modules}
  assert names - {"__init__", "options", "stock_options"} == {
    cli.load(command).__name__.rpartition(".")[2] for command in cli.COMMANDS
  }


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_shape(command):
  module = cli.load(command)
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
  of_nlp_train = {"pretrain_steps", "enable_async_checkpointing"}
  assert ours == {flag.name for flag in stock} | of_nlp_train
  mode = flags.FLAGS["mode"].parser.enum_values
  assert tuple(mode) == stock_options.MODES


@dataclasses.dataclass(frozen=True)
class _Options:
  """One field of every kind."""

  study: str = opt.argument("A file.")
  output_dir: str = opt.flag("A directory.")
  jobs: int = opt.flag("A number.", 1, least=1)
  rate: float = opt.flag("A part.", 0.5, least=0.0, most=1.0)
  dry_run: bool = opt.flag("Whether.", False)
  seeds: int | None = opt.flag("A number, or none.", None)
  init: str | None = opt.flag("One of two.", None, choices=("first", "b"))
  rates: tuple[float, ...] = opt.flag("Numbers.", ())
  names: tuple[str, ...] = opt.flag("Names.", ("x",))
  bindings: tuple[str, ...] = opt.flag("With commas.", (), repeated=True)


def test_what_follows_another_run_knows_no_tracker():
  mode = {"mode": "continuous_train_and_eval", "model_dir": "unused"}
  for given in ({"tracker": "wandb"}, {"accept_changes": True}):
    with pytest.raises(errors.UsageError, match="neither --tracker nor"):
      train.run(train.Options(experiment="swe/glue", **mode, **given))


def test_a_file_of_the_package_is_found_from_anywhere(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  names = "experiments/small/pieces.txt", "gin/swe.gin", "experiments/absent"
  line = f"--output_dir={names[0]} --names={','.join(names)} {names[1]}"
  found = _parse(*line.split())
  for value in (found.output_dir, found.names[0]):
    assert value.endswith(f"swe_tf/{names[0]}") and pathlib.Path(value).exists()
  assert found.names[2] == names[2] and found.study == names[1]
  own = tmp_path / names[0]
  own.parent.mkdir(parents=True)
  own.write_text("")
  assert _parse(*line.split()).names[0] == names[0], "own files come first"


@dataclasses.dataclass(frozen=True)
class _Many:
  names: tuple[str, ...] = opt.argument("Names.", choices=("a", "b"))


def _parse(*arguments, options_cls=_Options):
  values = flags.FlagValues()
  opt.define_flags(options_cls, values)
  return opt.from_flags(options_cls, values, values(["", *arguments])[1:])


def test_values():
  assert _parse("s.yaml", "--output_dir=d") == _Options(
    study="s.yaml", output_dir="d"
  )
  line = (
    "--output_dir d --jobs=2 --rate=1 --dry_run --seeds=3 --init=b "
    "--rates=1e-5,2 --names= --bindings=f(1,2) --bindings=g s.yaml"
  )
  assert _parse(*line.split()) == _Options(
    study="s.yaml",
    output_dir="d",
    jobs=2,
    rate=1.0,
    dry_run=True,
    seeds=3,
    init="b",
    rates=(1e-5, 2.0),
    names=(),
    bindings=("f(1,2)", "g"),
  )
  assert _parse("a", "b", options_cls=_Many) == _Many(names=("a", "b"))


@pytest.mark.parametrize(
  "options_cls, arguments, message",
  [
    (_Options, "", "STUDY is missing: A file."),
    (_Options, "s", "--output_dir is missing: A directory."),
    (_Options, "s t --output_dir=d", "unexpected argument 't'"),
    (_Options, "s --jobs=0", "'0' is not an integer of at least 1"),
    (_Options, "s --rate=nan", "a number of at least 0.0 and at most 1.0"),
    (_Options, "s --dry_run=maybe", "'maybe' is not true or false"),
    (_Options, "s --init=fiirst", "did you mean first.. is not one of first"),
    (_Many, "a c", "NAMES: 'c' is not one of a, b."),
    (_Many, "", "NAMES is missing: one of a, b."),
  ],
)
def test_a_wrong_call_is_one_line(options_cls, arguments, message):
  kinds = errors.UsageError, flags.IllegalFlagValueError
  with pytest.raises(kinds, match=message):
    _parse(*arguments.split(), options_cls=options_cls)
