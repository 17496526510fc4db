r"""Writes the scripts that train a run on a Cloud TPU, spot or not.

    swe launch --experiment=swe/bert_pretraining_text \
      --config_file=experiments/models/large.yaml \
      --config_file=experiments/tpu.yaml --params_override=... \
      --model_dir=gs://BUCKET/runs/large --fit=runs/doctor_tpu/tpu.json \
      --topology=v5e:2x4 --zone=ZONE --repository=URL --output_dir=launch

The flags are those of `swe train`, and where to run it. Nothing is requested:
`--output_dir` gets the validated config and five short scripts to read first.
`keep.sh` starts it all: it requests the TPU, requests another one after each
preemption, and returns it when the run has ended. The run is started again
after exit status 75 only, so an error does not cost another hour.
"""

import dataclasses
from importlib import resources
import re
import shlex
from typing import Any, NamedTuple

import jinja2
import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf.commands import options as opt
from swe_tf.commands import stock_options
from swe_tf.doctor.tpu import topologies

SCRIPTS = ("create.sh", "startup.sh", "train.sh", "keep.sh", "teardown.sh")


class _Machine(NamedTuple):
  """How Google Cloud names a generation, as of 2026."""

  accelerator: str  # The type of a slice; most generations count cores.
  image: str  # The software version of the VM.
  chips_per_host: int  # Of the largest slice that has a single host.


_MACHINES = {
  "v4": _Machine("v4-{cores}", "tpu-ubuntu2204-base", 4),
  "v5e": _Machine("v5litepod-{chips}", "v2-alpha-tpuv5-lite", 8),
  "v5p": _Machine("v5p-{cores}", "v2-alpha-tpuv5", 4),
  "v6e": _Machine("v6e-{chips}", "v2-alpha-tpuv6e", 8),
}


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  mode: str = opt.flag(
    "What to run.", "train_and_eval", choices=stock_options.MODES
  )
  model_dir: str = opt.flag("URL for the run, in a bucket.")
  output_dir: str = opt.flag("New directory for the scripts.")
  topology: str = opt.flag("The TPU, with a single host.", "v5e:2x4")
  zone: str = opt.flag("Zone of the TPU, such as us-west4-a.")
  repository: str = opt.flag("URL from which the VM clones this package.")
  revision: str = opt.flag("Branch, tag or commit to check out.", "main")
  name: str = opt.flag("Name of the TPU.", "swe")
  spot: bool = opt.flag("A spot TPU: cheaper, may be preempted.", True)
  fit: str = opt.flag(
    "tpu.json of `swe doctor tpu --fit`, for its micro-batches.", ""
  )

  def __post_init__(self):
    # The VM clones the repository, and is lost with all of its directories.
    for name, pattern, example in (
      ("name", r"[a-z]([-a-z0-9]*[a-z0-9])?", "swe-large-2"),
      ("zone", r"[a-z]+-[a-z]+\d+-[a-z]", "us-west4-a"),
      ("repository", r"\w+://.+|[^/]+@.+", "https://HOST/swe_tf"),
      ("model_dir", r"\w+://[^/]*/+[^/].*", "gs://BUCKET/runs/NAME"),
    ):
      if not re.fullmatch(pattern, getattr(self, name)):
        raise errors.UsageError(
          f"--{name} ({getattr(self, name)!r}) must look like {example}."
        )
    for name in ("gin_file", "gin_params", "tpu"):
      if getattr(self, name):
        raise errors.UsageError(
          f"--{name} does not reach the VM; set fields of a swe/ experiment "
          "instead: swe/bert_pretraining takes the files of bert/pretraining."
        )


def run(options: Options) -> None:
  topology = topologies.parse(options.topology)
  generation = topology.name.partition(":")[0]
  machine = _MACHINES.get(generation)
  chips = topology.replicas // topology.generation.replicas_per_chip
  if machine is None or chips > machine.chips_per_host:
    largest = [f"{m.chips_per_host} {g}" for g, m in _MACHINES.items()]
    raise errors.UsageError(
      f"--topology={topology.name} is not one host of {', '.join(largest)}; "
      "docs/tpu.md#many-workers covers several."
    )
  files.refuse_existing([options.output_dir])
  config = stock_options.read_config(options)
  from swe_tf.configs import cost
  from swe_tf.configs import limits
  from swe_tf.doctor.tpu import programs

  # Whether the bucket has a run or a checkpoint is for the VM to see.
  needed = stock_options.needed_data(options)
  limits.check_inputs(config, *needed, resumes=True)
  if options.fit:
    found = files.read_object(options.fit, topology=str, micro_batches=int)
    if found["topology"] != topology.name:
      raise errors.UsageError(
        f"--fit={options.fit} is for {found['topology']}, not {topology.name}."
      )
    config = config.replace(task={"micro_batches": found["micro_batches"]})
  programs.check_batch(config, topology)
  _check_reachable(config)
  launch_dir = options.model_dir.rstrip("/") + ".launch"
  values = {
    "bucket": "/".join(options.model_dir.split("/")[:3]),
    "region": options.zone.rpartition("-")[0],
    "accelerator": machine.accelerator.format(chips=chips, cores=2 * chips),
    "image": machine.image,
    "launch_dir": launch_dir,
    "flags": [
      f"--experiment={options.experiment}",
      f"--mode={options.mode}",
      f"--model_dir={options.model_dir}",
      f"--config_file={launch_dir}/run.yaml",
      "--tpu=local",
    ],
  }
  with files.new_directory(options.output_dir) as folder:
    text = yaml.safe_dump(config.as_dict(), sort_keys=False)
    (folder / "run.yaml").write_text(text, encoding="utf-8")
    for name, text in render(dataclasses.asdict(options) | values).items():
      (folder / name).write_text(text, encoding="utf-8")
  price = topologies.Machine(generation, chips)
  flops = cost.estimate(config).flops
  print(
    f"wrote {options.output_dir}: {values['accelerator']} in {options.zone}, "
    f"task.micro_batches={config.task.micro_batches}, about "
    f"{price.hours(flops):,.1f} hours and {price.dollars(flops):,.0f} dollars "
    f"({price}; spot costs less)"
  )
  if not options.fit:
    print(
      "whether it fits the chips was not checked: swe doctor tpu --fit, then "
      "--fit=runs/doctor_tpu/tpu.json"
    )
  print(f"read the scripts, then: bash {options.output_dir}/keep.sh")


def _check_reachable(config: Any) -> None:
  """Raises unless the VM would use its TPU and see the data."""
  strategy = config.runtime.distribution_strategy
  if strategy != "tpu":
    raise errors.UsageError(
      f"runtime.distribution_strategy is {strategy!r}; add "
      "--config_file=experiments/tpu.yaml."
    )
  task = config.task.as_dict()
  given = {"init_checkpoint": task["init_checkpoint"]} | {
    f"{data}.{name}": task[data].get(name)
    for data in ("train_data", "validation_data")
    for name in ("input_path", "vocab_file_path")
  }
  for name, paths in given.items():
    for path in files.split(paths or ""):
      # A vocabulary of this package is in the VM's clone too.
      if not files.is_url(path) and not library.has(path):
        raise errors.UsageError(
          f"task.{name} ({path}) must be a URL: the TPU VM has no such file."
        )


def render(values: dict[str, Any]) -> dict[str, str]:
  """Returns the scripts by name; every value is quoted for the shell."""
  folder = resources.files(__package__) / "launch_scripts"
  env = jinja2.Environment(
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    finalize=lambda value: shlex.quote(str(value)),
  )
  return {
    name: env.from_string((folder / name).read_text("utf-8")).render(values)
    for name in SCRIPTS
  }
