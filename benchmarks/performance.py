r"""Runs all benchmarks of `docs/performance.md`; writes tables and figure.

    python -m benchmarks.performance --output_dir=docs/results/performance \
      --text=FILE --vocab=FILE

Takes an hour and a half on 2 cores, alone on the machine. A benchmark whose
JSON file exists is not run again; delete the file to repeat it. Without --text
the input pipeline is left out.
"""

import json
import pathlib
import statistics
import subprocess
import sys

from absl import app
from absl import flags
from matplotlib import figure as figure_lib

_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", "docs/results/performance", "JSON files, table and figure."
)
_TEXT = flags.DEFINE_string("text", "", "Text, for the input pipeline.")
_VOCAB = flags.DEFINE_string("vocab", "", "WordPieces, for the same.")
_SECONDS = flags.DEFINE_float(
  "seconds", 60.0, "How long the steps of one configuration take turns."
)

_DEPTHS = (6, 12, 24, 48)
_DOMINATING = ("compute", "optimizer")


def _benchmarks() -> dict[str, list[str]]:
  """Returns the arguments of each benchmark by the name of its JSON file."""
  step_time = ["step_time", f"--seconds={_SECONDS.value}"]
  # Each has its own process, which keeps the memory of all that it measured and
  # can have collectives of one size only.
  found = {
    f"step_time_{layers}_layers_{name}": [
      *step_time,
      f"--layers={layers}",
      f"--configurations={name} dominates",
    ]
    for layers in _DEPTHS
    for name in _DOMINATING
  }
  found |= {
    "step_time_few_tokens": [
      *step_time,
      "--layers=6,12",
      "--configurations=few tokens",
    ],
    "step_time_2_replicas": [*step_time, "--layers=6", "--replicas=2"],
    "step_time_4_replicas": [
      *step_time,
      "--layers=6",
      "--replicas=4",
      "--configurations=compute dominates,optimizer dominates",
    ],
    "lifecycle": ["lifecycle", f"--layers={','.join(map(str, _DEPTHS))}"],
  }
  if _TEXT.value and _VOCAB.value:
    for length in (128, 512):
      found[f"input_pipeline_{length}"] = [
        "input_pipeline",
        f"--text={_TEXT.value}",
        f"--vocab={_VOCAB.value}",
        f"--seq_length={length}",
      ]
  return found


def _run_all(directory: pathlib.Path) -> None:
  directory.mkdir(parents=True, exist_ok=True)
  for name, (module, *arguments) in _benchmarks().items():
    path = directory / f"{name}.json"
    if path.exists():
      continue
    unfinished = path.with_suffix(".unfinished")
    subprocess.run(
      [
        sys.executable,
        "-m",
        f"benchmarks.{module}",
        *arguments,
        f"--output={unfinished}",
      ],
      check=True,
    )
    unfinished.rename(path)


def _read(directory: pathlib.Path, name: str):
  path = directory / f"{name}.json"
  return json.loads(path.read_text()) if path.exists() else []


def _step_rows(results) -> list[str]:
  lines = [
    "| | layers | replicas | shared / stock | unshared / stock | a copy "
    "of stock / stock | shared / truly tied | shared / stock, work | "
    "unshared / stock, work |",
    "|" + "---|" * 9,
  ]

  def with_spread(r, kind):
    low, high = r[f"{kind}/stock quartiles"]
    return f"{r[f'{kind}/stock']:.3f} ({low:.3f} to {high:.3f})"

  for r in results:
    lines.append(
      f"| {r['configuration']} | {r['layers']} | {r['replicas']} | "
      f"{with_spread(r, 'shared')} | {with_spread(r, 'unshared')} | "
      f"{r['stock/stock']:.3f} | "
      f"{r['shared/tied']:.3f} | {r['shared/stock work']:.3f} | "
      f"{r['unshared/stock work']:.3f} |"
    )
  if results:
    mean = {
      name: statistics.geometric_mean(r[name] for r in results)
      for name in (
        "unshared/stock",
        "stock/stock",
        "shared/tied",
        "unshared/stock work",
      )
    }
    lines.append(
      f"| geometric mean | | | | {mean['unshared/stock']:.3f} | "
      f"{mean['stock/stock']:.3f} | {mean['shared/tied']:.3f} | | "
      f"{mean['unshared/stock work']:.3f} |"
    )
  return lines


def _life_rows(results) -> list[str]:
  lines = [
    "| layers | compile stock | compile shared | untie pause | save | "
    "restore | memory stock | shared | unshared |",
    "|" + "---|" * 9,
  ]
  for r in results:
    seconds = [
      r[name]
      for name in (
        "stock compile",
        "shared compile",
        "untie pause",
        "save",
        "restore",
      )
    ]
    memory = [
      r[f"{kind} memory"] / 1e6 for kind in ("stock", "shared", "unshared")
    ]
    lines.append(
      "| "
      + " | ".join(
        [
          str(r["layers"]),
          *(f"{s:.2f} s" for s in seconds),
          *(f"{m:.0f} MB" for m in memory),
        ]
      )
      + " |"
    )
  return lines


def _input_rows(directory) -> list[str]:
  lines = [
    "| from | sequence length | tokens/s | Model Garden | ratio |",
    "|---|---|---|---|---|",
  ]
  for length in (128, 512):
    r = _read(directory, f"input_pipeline_{length}")
    for ours, stock in (("text", "stock_text"), ("tokens", "masked")):
      if r:
        lines.append(
          f"| {ours} | {length} | {r[ours]:,.0f} | {r[stock]:,.0f} | "
          f"{r[f'{ours}/{stock}']:.2f} |"
        )
  return lines


def _draw(directory: pathlib.Path) -> None:
  """Draws how ratios, pause and memory grow with the number of layers."""
  figure = figure_lib.Figure(figsize=(11, 3.4), layout="constrained")
  ratios, times, memory = figure.subplots(1, 3)
  for name in _DOMINATING:
    rows = [
      r
      for layers in _DEPTHS
      for r in _read(directory, f"step_time_{layers}_layers_{name}")
    ]
    layers = [r["layers"] for r in rows]
    for kind, style in (("shared", "o-"), ("unshared", "s--")):
      ratios.plot(
        layers,
        [r[f"{kind}/stock"] for r in rows],
        style,
        label=f"{kind}, {name} dominates",
      )
  ratios.axhline(1.0, color="0.7", zorder=0)
  ratios.set(xlabel="layers", ylabel="step time / stock", ylim=(0, None))
  life = _read(directory, "lifecycle")
  layers = [r["layers"] for r in life]
  for name in ("stock compile", "shared compile", "untie pause", "save"):
    times.plot(layers, [r[name] for r in life], "o-", label=name)
  times.set(xlabel="layers", ylabel="seconds", ylim=(0, None))
  for kind in ("stock", "shared", "unshared"):
    memory.plot(
      layers, [r[f"{kind} memory"] / 1e6 for r in life], "o-", label=kind
    )
  memory.set(xlabel="layers", ylabel="peak memory, MB", ylim=(0, None))
  for axes in (ratios, times, memory):
    axes.legend(fontsize=7)
  figure.savefig(directory / "performance.png", dpi=110)


def main(_):
  directory = pathlib.Path(_OUTPUT_DIR.value)
  _run_all(directory)
  table = "\n\n".join(
    "\n".join(lines)
    for lines in (
      _step_rows(
        [
          result
          for name in _benchmarks()
          if name.startswith("step_time")
          for result in _read(directory, name)
        ]
      ),
      _life_rows(_read(directory, "lifecycle")),
      _input_rows(directory),
    )
  )
  (directory / "tables.md").write_text(table + "\n", encoding="utf-8")
  _draw(directory)
  print(table)


if __name__ == "__main__":
  app.run(main)
