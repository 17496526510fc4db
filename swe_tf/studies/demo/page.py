"""The demo's page: one self-contained HTML file.

Everything that comes from the user, a directory or an override, is escaped.
"""

from collections.abc import Iterable, Sequence
import html
import shlex

from swe_tf.analysis import html_page
from swe_tf.studies.demo import figures
from swe_tf.studies.demo import sentences
from swe_tf.studies.demo import story as story_lib

TITLE = "Sharing weights, then unsharing: the demo"

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; color: #1a1a1a; background: #fff; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0 1rem; }
th, td { border: 1px solid #ccc; padding: .25rem .5rem; text-align: left;
  white-space: nowrap; }
th { background: #f2f2f2; white-space: normal; vertical-align: bottom; }
img { max-width: 100%; height: auto; }
figcaption { font-size: 13px; color: #444; }
code, pre { font: 13px/1.6 ui-monospace, monospace; }
pre { background: #f6f6f6; padding: .6rem .8rem; overflow-x: auto; }
.verdict { font-size: 1.25em; border-left: 4px solid #0072B2;
  padding: .3rem 0 .3rem 1rem; margin: 1rem 0; }
p { overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { flex: 1 1 26rem; max-width: 34rem; margin: 0; }
.right { background: #cde9d6; border-radius: 2px; padding: 0 1px; }
.wrong { background: #f9d0c4; border-radius: 2px; padding: 0 1px;
  text-decoration: underline; }
"""


def make(
  story: story_lib.Story, output_dir: str, params_override: str | None
) -> str:
  """Returns the page.

  Args:
    story: The runs.
    output_dir: The demo's directory, for the commands to run next.
    params_override: The overrides of both runs; may be empty.
  """
  return html_page.page(
    TITLE,
    [
      html_page.tag("h1", TITLE),
      html_page.tag("p", story.verdict(), ' class="verdict"'),
      *_what_was_trained(story, params_override),
      html_page.tag("h2", "The curves"),
      *_figures([figures.draw_losses(story)]),
      *_saved_or_lost(story),
      *_apart(story),
      *_filled(story),
      *_next(story, output_dir),
    ],
    _STYLE,
  )


def _paragraphs(*texts: str) -> list[str]:
  return [html_page.tag("p", text) for text in texts]


def _figures(drawn) -> list[str]:
  shown = [html_page.figure(*each) for each in drawn]
  return ['<div class="figures">', *shown, "</div>"]


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
  """Returns a table; the cells of `rows` are HTML already."""
  head = "".join(html_page.tag("th", title) for title in titles)
  lines = ['<div class="wide"><table>', f"<thead><tr>{head}</tr></thead>"]
  for row in rows:
    cells = "".join(f"<td>{cell}</td>" for cell in row)
    lines.append(f"<tr>{cells}</tr>")
  return [*lines, "</table></div>"]


def _what_was_trained(
  story: story_lib.Story, params_override: str | None
) -> list[str]:
  result = story.model.result
  text = (
    f"{len(result['layer_cosines'])} layers learn to fill in masked characters "
    f"in the docstrings of the installed packages: {story.model.steps:,} steps "
    f"of {result['tokens_per_step']:,} tokens."
  )
  tau = story.model.untie_step
  if tau:
    text += (
      f" In the first {tau:,} steps all layers of the shared model have the "
      "same weights; then each goes its own way. The baseline has the same "
      "data, seed and learning rate, and never shares."
    )
  if params_override:
    text += f" Both runs have --params_override={params_override}"
  rows = [
    (
      html.escape(name),
      f"{arm.loss:.3f}",
      f"{arm.result['masked_lm_accuracy']:.1%}",
      f"{arm.result['flops']:.2e}",
      f"{arm.result['seconds']:.0f} s",
      f"{arm.result['cpu_seconds']:.0f} s",
    )
    for name, arm in story.arms().items()
  ]
  titles = (
    *("run", "final validation loss", "masked characters right"),
    *("FLOPs", "time", "processor time"),
  )
  return [*_paragraphs(text), *_table(titles, rows)]


def _saved_or_lost(story: story_lib.Story) -> list[str]:
  if story.baseline is None:
    return []
  return [
    html_page.tag("h2", "What was saved or lost"),
    *_paragraphs(
      story.steps_text(),
      "This is read off validation curves at a point where the learning rate "
      "is still falling: a run planned to be that short would end lower. "
      + story.flops_text(),
    ),
  ]


def _apart(story: story_lib.Story) -> list[str]:
  lines = [html_page.tag("h2", "The layers")]
  drawn = []
  if story.model.gradient_cosine:
    drawn.append(figures.draw_gradient_cosine(story))
  if story.model.untie_step and len(story.model.drift) > 1:
    drawn.append(figures.draw_drift(story))
  drawn += [
    figures.draw_layer_cosines(name, arm) for name, arm in story.arms().items()
  ]
  if story.baseline is not None:
    lines += _paragraphs(
      "Shared layers start from the same point and drift apart after untying. "
      "At the end the mean cosine between the kernels of two layers is "
      f"{story.model.mean_layer_cosine:.2f}, and "
      f"{story.baseline.mean_layer_cosine:.2f} in the baseline."
    )
  return [*lines, *_figures(drawn)]


def _filled(story: story_lib.Story) -> list[str]:
  """Returns the filled-in sentences, with a column for each model."""
  columns = {}
  if story.model.result.get("filled_at_untying"):
    title = f"shared, at untying (step {story.model.untie_step:,})"
    columns[title] = story.model.result["filled_at_untying"]
  for name, arm in story.arms().items():
    if arm.result["filled"]:
      columns[f"{name}, at the end"] = arm.result["filled"]
  if not columns:
    return []
  texts = sentences.all_sentences(story.model.result["seq_length"])
  rows = [
    [
      f"<code>{_hidden(sentence)}</code>",
      *(
        f"<code>{_marked(sentence, filled[index])}</code>"
        for filled in columns.values()
      ),
    ]
    for index, sentence in enumerate(texts)
  ]
  whole = sum(len(sentence.masked) for sentence in texts)
  score = [f"{_right(texts, each)} of {whole}" for each in columns.values()]
  return [
    html_page.tag("h2", "Fill in the blanks"),
    *_paragraphs(
      "Each model's most probable character for each blank. Green is right; "
      "red and underlined is wrong."
    ),
    *_table(["masked", *columns], [*rows, ["right", *score]]),
  ]


def _hidden(sentence: sentences.Sentence) -> str:
  return html.escape(
    "".join(
      "_" if place in sentence.masked else character
      for place, character in enumerate(sentence.text)
    )
  )


def _marked(sentence: sentences.Sentence, filled: Sequence[str]) -> str:
  """Returns a sentence as HTML, with the filled-in characters marked."""
  tokens = dict(zip(sentence.masked, filled))
  parts = []
  for place, character in enumerate(sentence.text):
    if place not in tokens:
      parts.append(html.escape(character))
      continue
    token = tokens[place]
    kind = "right" if token == character else "wrong"
    shown = "␣" if token == " " else token
    parts.append(html_page.tag("span", shown, f' class="{kind}"'))
  return "".join(parts)


def _right(
  texts: Sequence[sentences.Sentence], filled: Sequence[Sequence[str]]
) -> int:
  return sum(
    token == sentence.text[place]
    for sentence, tokens in zip(texts, filled)
    for place, token in zip(sentence.masked, tokens)
  )


def _next(story: story_lib.Story, output_dir: str) -> list[str]:
  """Returns the commands that a reader may want to run next."""
  other = shlex.quote(f"{output_dir.rstrip('/')}_one_loop")
  here = shlex.quote(output_dir)
  commands = {
    "The recipe that was cheapest on text in docs/map.md, against the same "
    "baseline:": f"swe demo --output_dir={other} "
    "--params_override=task.sharing.recipe=one_loop",
    "Would sharing pay off for a run that you are planning, on your data?": (
      "swe pilot --experiment=swe/bert_pretraining_text --config_file=... "
      "--output_dir=runs/pilot --hours=1"
    ),
    "The curves in TensorBoard:": f"tensorboard --logdir={here}",
    "The checkpoint as a SavedModel (docs/finetuning.md shows how to fine-tune "
    "it on SST-2 and SQuAD):": f"swe export --checkpoint={here}/model "
    "--format=savedmodel --output_dir=exported",
  }
  lines = [html_page.tag("h2", "What to run next")]
  for text, command in commands.items():
    lines += [html_page.tag("p", text), html_page.tag("pre", command)]
  return lines
