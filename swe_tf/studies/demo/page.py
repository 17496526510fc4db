"""The demo's page: one self-contained HTML file, from `page.html`.

Everything that comes from the user, a directory or an override, is escaped.
"""

import pathlib
import shlex

import jinja2

from swe_tf import files
from swe_tf.studies.demo import figures
from swe_tf.studies.demo import sentences
from swe_tf.studies.demo import story as story_lib

TITLE = "Sharing weights, then unsharing: the demo"
_TEMPLATE = pathlib.Path(__file__).with_name("page.html")


def make(
  story: story_lib.Story, output_dir: str, params_override: str | None
) -> str:
  """Returns the page.

  Args:
    story: The runs.
    output_dir: The demo's directory, for the commands to run next.
    params_override: The overrides of both runs; may be empty.
  """
  model = story.model
  layers = []
  if model.gradient_cosine:
    layers.append(figures.draw_gradient_cosine(story))
  if model.untie_step and len(model.drift) > 1:
    layers.append(figures.draw_drift(story))
  for name, arm in story.arms().items():
    layers.append(figures.draw_layer_cosines(name, arm))
  filled = {}
  if model.result.get("filled_at_untying"):
    title = f"shared, at untying (step {model.untie_step:,})"
    filled[title] = model.result["filled_at_untying"]
  for name, arm in story.arms().items():
    if arm.result["filled"]:
      filled[f"{name}, at the end"] = arm.result["filled"]
  texts = sentences.all_sentences(model.seq_length)
  whole = sum(len(sentence.masked) for sentence in texts)
  right = [
    sum(text.count_right(each) for text, each in zip(texts, answers))
    for answers in filled.values()
  ]
  environment = jinja2.Environment(autoescape=True, trim_blocks=True)
  return environment.from_string(files.read_text(_TEMPLATE)).render(
    title=TITLE,
    story=story,
    model=model,
    params_override=params_override,
    curves=[figures.draw_losses(story)],
    layers=layers,
    filled=filled,
    sentences=texts,
    scores=[f"{each} of {whole}" for each in right],
    here=shlex.quote(output_dir),
    other=shlex.quote(f"{output_dir.rstrip('/')}_one_loop"),
  )
