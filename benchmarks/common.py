"""What benchmarks share: a BERT to train, taking turns, writing figures.

What is compared takes turns in one process, in another order every round, so
that whatever else the machine does affects all of it. A figure is the median
over the rounds of the ratio within a round.
"""

from collections.abc import Callable, Mapping, Sequence
import json
import pathlib
import random
import statistics
import time
from typing import Any

from tests import tiny


def take_turns(
  sides: Mapping[str, Callable[[], Any]], rounds: int, seconds: float = 0.0
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
  """Returns the wall-clock and CPU seconds of each side in every round.

  Args:
    sides: What to call.
    rounds: How many rounds there are at least.
    seconds: How long to go on at least.
  """
  times: dict[str, list[float]] = {name: [] for name in sides}
  work: dict[str, list[float]] = {name: [] for name in sides}
  order = random.Random(0)
  end = time.perf_counter() + seconds
  done = 0
  while done < rounds or time.perf_counter() < end:
    for name in order.sample(list(sides), len(sides)):
      start, start_work = time.perf_counter(), time.process_time()
      sides[name]()
      times[name].append(time.perf_counter() - start)
      work[name].append(time.process_time() - start_work)
    done += 1
  return times, work


def ratios(
  measured: Mapping[str, Sequence[float]], name: str, to: str
) -> list[float]:
  """Returns the ratio of two sides in every round."""
  return [one / other for one, other in zip(measured[name], measured[to])]


def median_ratio(
  measured: Mapping[str, Sequence[float]], name: str, to: str
) -> float:
  """Returns the median over the rounds of the ratio of two sides."""
  return statistics.median(ratios(measured, name, to))


def write_figures(path: str | None, figures: Any) -> None:
  """Writes a JSON file, if there is a path."""
  if path:
    text = json.dumps(figures, indent=2)
    pathlib.Path(path).write_text(text, encoding="utf-8")


def make_config(
  width: int, batch: int, length: int, layers: int, optimizer: str = "adamw"
):
  """Returns the experiment of a BERT of the given size."""
  data = {
    "input_path": "unused",
    "global_batch_size": batch,
    "seq_length": length,
    "max_predictions_per_seq": max(1, length // 8),
  }
  return tiny.config_of(
    {
      "task": {
        "model": {
          "encoder": {
            "any": {
              "vocab_size": 1000,
              "hidden_size": width,
              "num_layers": layers,
              "num_attention_heads": 4,
              "intermediate_size": 4 * width,
              "max_position_embeddings": length,
            }
          }
        },
        "train_data": data,
        "validation_data": data,
      },
      "trainer": {
        "train_steps": 10**6,
        "steps_per_loop": 1000,
        "optimizer_config": {"optimizer": {"type": optimizer}},
      },
    }
  )
