"""Which fields make another run, and which another result."""

import pytest

from swe_tf import sameness


@pytest.mark.parametrize(
  "field, training, result",
  [
    ("task.train_data.global_batch_size", True, True),
    ("runtime.mixed_precision_dtype", True, True),
    ("task.sharing.untie_step", True, True),
    # What it is scored on, and what it started from.
    ("task.validation_data.input_path", False, True),
    ("trainer.validation_steps", False, True),
    ("task.init_checkpoint", False, True),
    # How it runs, and what it keeps and shows.
    ("runtime.num_gpus", False, False),
    ("task.micro_batches", False, False),
    ("trainer.max_to_keep", False, False),
  ],
)
def test_what_a_field_matters_to(field, training, result):
  assert sameness.defines_training(field) == training
  assert sameness.defines_result(field) == result


def test_differences():
  then = {"task": {"seed": 1, "sizes": (1, 2)}, "runtime": {"num_gpus": 1}}
  now = {"task": {"seed": 2, "sizes": [1, 2], "name": None, "stages": []}}
  assert sameness.difference(then, now) == [
    ("task.seed", 1, 2),
    ("runtime.num_gpus", 1, None),
  ]
  assert sameness.difference(then, now, sameness.defines_training) == [
    ("task.seed", 1, 2)
  ]
