"""The facts of the GLUE tasks: columns, labels, metrics, submission files.

A table and a lookup; `examples` reads the files, and `swe_tf.scoring.glue`
computes the metrics. Imports no TensorFlow.
"""

from collections.abc import Mapping
import dataclasses

from swe_tf import errors

NLI_LABELS = ("contradiction", "entailment", "neutral")
ENTAILMENT_LABELS = ("entailment", "not_entailment")
BINARY_LABELS = ("0", "1")

# The scores of STS-B, the only regression.
SCORE_RANGE = (0.0, 5.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlueTask:
  """What is needed to read, train, score and submit a task.

  Attributes:
    name: The name of the task and of its directory in the GLUE download.
    texts: For each text of an example, the names that its column goes by. The
      premise comes before the hypothesis, as in BERT.
    label: The names that the label's column goes by.
    labels: The classes, in the order of their ids; empty for a regression.
    metrics: The official metrics. The first one selects a fine-tuning run.
    model_garden_metric: The `metric_type` of Model Garden's sentence
      prediction task that comes closest.
    bare_columns: The columns of files that come without a header.
    ignored_labels: Labels of examples that are left out, because the annotators
      had no majority.
    drops_malformed: Whether rows with a wrong number of columns are left out,
      as is usual for QQP. Elsewhere they are an error.
    submissions: The submission files that this task fills, each with the
      number of rows of its test set.
  """

  name: str
  texts: tuple[tuple[str, ...], ...]
  label: tuple[str, ...] = ("label",)
  labels: tuple[str, ...] = BINARY_LABELS
  metrics: tuple[str, ...] = ("accuracy",)
  model_garden_metric: str = "accuracy"
  bare_columns: tuple[str, ...] = ()
  ignored_labels: tuple[str, ...] = ()
  drops_malformed: bool = False
  submissions: Mapping[str, int] = dataclasses.field(default_factory=dict)

  @property
  def is_regression(self) -> bool:
    return not self.labels

  @property
  def why_dropped(self) -> str:
    """Why rows are left out, to say beside their number."""
    if self.drops_malformed:
      return " (wrong number of columns)"
    return f" (label {', '.join(self.ignored_labels)})"


_SENTENCES = (("sentence1",), ("sentence2",))
_QUESTIONS = ("question1", "question2")

TASKS = {
  task.name: task
  for task in (
    GlueTask(
      name="CoLA",
      texts=(("sentence",),),
      metrics=("matthews_corrcoef",),
      model_garden_metric="matthews_corrcoef",
      bare_columns=("source", "label", "mark", "sentence"),
      submissions={"CoLA": 1063},
    ),
    GlueTask(
      name="SST-2",
      texts=(("sentence", "content"),),
      submissions={"SST-2": 1821},
    ),
    GlueTask(
      name="MRPC",
      texts=(("#1 String", "sentence1"), ("#2 String", "sentence2")),
      label=("Quality", "label"),
      metrics=("f1", "accuracy"),
      model_garden_metric="f1",
      submissions={"MRPC": 1725},
    ),
    GlueTask(
      name="STS-B",
      texts=_SENTENCES,
      label=("score", "label"),
      labels=(),
      metrics=("pearson", "spearman"),
      model_garden_metric="pearson_spearman_corr",
      submissions={"STS-B": 1379},
    ),
    GlueTask(
      name="QQP",
      texts=tuple((name,) for name in _QUESTIONS),
      label=("is_duplicate", "label"),
      metrics=("f1", "accuracy"),
      model_garden_metric="f1",
      bare_columns=("id", "qid1", "qid2", *_QUESTIONS, "is_duplicate"),
      drops_malformed=True,
      submissions={"QQP": 390965},
    ),
    GlueTask(
      name="MNLI",
      texts=(("sentence1", "premise"), ("sentence2", "hypothesis")),
      label=("gold_label", "label"),
      labels=NLI_LABELS,
      ignored_labels=("-",),
      submissions={"MNLI-m": 9796, "MNLI-mm": 9847},
    ),
    GlueTask(
      name="QNLI",
      texts=(("question",), ("sentence",)),
      labels=ENTAILMENT_LABELS,
      submissions={"QNLI": 5463},
    ),
    GlueTask(
      name="RTE",
      texts=_SENTENCES,
      labels=ENTAILMENT_LABELS,
      submissions={"RTE": 3000},
    ),
    GlueTask(name="WNLI", texts=_SENTENCES, submissions={"WNLI": 146}),
    GlueTask(
      name="AX",
      texts=(("sentence1", "Premise"), ("sentence2", "Hypothesis")),
      label=("label", "Label"),
      labels=NLI_LABELS,
      metrics=("matthews_corrcoef",),
      model_garden_metric="matthews_corrcoef",
      submissions={"AX": 1104},
    ),
  )
}

# The eleven files of a submission, each with its task.
SUBMISSIONS = dict(
  sorted((name, task) for task in TASKS.values() for name in task.submissions)
)


def find_task(name: str) -> GlueTask:
  """Returns a task by its name or a submission file's, ignoring case.

  >>> find_task("mnli-mm").labels
  ('contradiction', 'entailment', 'neutral')
  """
  for known, task in [*TASKS.items(), *SUBMISSIONS.items()]:
    if known.lower() == name.lower():
      return task
  choices = f"choose from {', '.join(TASKS)}, MNLI-m, MNLI-mm."
  near = errors.nearest(name.upper(), [*TASKS, *SUBMISSIONS], choices)
  raise errors.UsageError(f"there is no GLUE task {name!r}; {near}")
