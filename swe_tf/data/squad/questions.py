"""Reads SQuAD files; errors name the file, the line and the question.

Scoring needs ids and answers (`read_squad_file`). Records also need every
answer to be where `answer_start` says (`check_convertible`), and the lengths of
their `Windows`. Imports no TensorFlow.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import json
from typing import Any

from swe_tf import errors
from swe_tf import files

VERSIONS = ("1.1", "2.0")


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
  """An answer by one annotator, and where it starts in the context."""

  text: str
  start: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
  """A question about a paragraph.

  Attributes:
    id: The key of its prediction.
    text: The question; None if the file has only what scoring needs.
    context: The paragraph; likewise None.
    answers: The answers; empty if the paragraph does not have one (v2.0).
    is_impossible: v2.0's flag that says the same; None if absent.
  """

  id: str
  text: str | None
  context: str | None
  answers: tuple[Answer, ...]
  is_impossible: bool | None


@dataclasses.dataclass(frozen=True)
class SquadFile:
  """The questions of one file.

  Attributes:
    path: The file.
    version: `1.1` or `2.0`.
    questions: All of them, in order.
  """

  path: files.Path
  version: str
  questions: tuple[Question, ...]

  @property
  def looks_like_training(self) -> bool:
    """Whether no question has several answers; in dev files, many do."""
    return all(len(question.answers) <= 1 for question in self.questions)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
  """How a question and its paragraph become sequences, as BERT does it.

  Attributes:
    max_seq_length: The length of every sequence.
    max_query_length: Longer questions are cut to this many tokens.
    doc_stride: By how many tokens the windows over a long paragraph advance.
  """

  max_seq_length: int = 384
  max_query_length: int = 64
  doc_stride: int = 128

  def __post_init__(self):
    # [CLS] question [SEP] paragraph [SEP].
    if self.max_seq_length - self.max_query_length - 3 < 1:
      raise errors.UsageError(
        f"max_seq_length ({self.max_seq_length}) leaves no token for the "
        f"paragraph after max_query_length ({self.max_query_length}) and 3 "
        "special tokens; raise the former or lower the latter."
      )


def read_squad_file(path: files.PathLike, version: str) -> SquadFile:
  """Reads a SQuAD JSON file; in version `1.1` every question has an answer.

  Raises:
    UsageError: If something that scoring needs is missing, or an id is used
      twice.
  """
  path = files.as_path(path)
  questions: dict[str, Question] = {}
  for question in _questions(path, files.read_json(path)):
    if question.id in questions:
      raise _fault(path, question.id, "the id is used twice.")
    if version == "1.1" and not question.answers:
      raise _fault(
        path,
        question.id,
        "no answers, but in v1.1 every question has one; is this a file of "
        "version 2.0?",
      )
    questions[question.id] = question
  if not questions:
    raise errors.UsageError(f"{path} has no questions.")
  return SquadFile(path, version, tuple(questions.values()))


def check_convertible(squad: SquadFile, *, for_training: bool) -> None:
  """Checks what conversion to records relies on.

  Raises:
    UsageError: If an answer is not in its context where `answer_start` says, a
      text is missing, `is_impossible` does not agree with the answers, or a
      training question has several answers.
  """
  for question in squad.questions:
    count = len(question.answers)
    if question.text is None or question.context is None:
      missing = "question" if question.text is None else "context"
      fault = f'no "{missing}".'
    elif squad.version == "2.0" and question.is_impossible is not (not count):
      fault = (
        f"{count} answers, but is_impossible is {question.is_impossible}; is "
        "this a file of version 1.1?"
      )
    elif for_training and count > 1:
      fault = (
        f"{count} answers, but a training question has one; prepare the file "
        "as the split eval."
      )
    else:
      fault = _misplaced(question.context, question.answers)
    if fault:
      raise _fault(squad.path, question.id, fault)


def _misplaced(context: str, answers: Iterable[Answer]) -> str:
  """Returns which answer is not where it should be, if any."""
  for answer in answers:
    if answer.start is None or answer.start < 0:
      return f"the answer {answer.text!r} has no valid answer_start."
    found = context[answer.start : answer.start + len(answer.text)]
    if found != answer.text:
      return (
        f"the answer {answer.text!r} is not in its context at "
        f"answer_start {answer.start}, where {found!r} stands; correct "
        "answer_start or remove the question."
      )
  return ""


def _questions(path: files.Path, content: Any) -> Iterator[Question]:
  """Yields the questions of a file's content, or raises at the first fault."""

  def get(holder, key, kind, place):
    value = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(value, kind):
      what = f"no {kind.__name__} {key!r}; is this a SQuAD file?"
      raise _fault(path, place, what)
    return value

  for article in get(content, "data", list, "top level"):
    title = article.get("title") if isinstance(article, dict) else None
    for paragraph in get(article, "paragraphs", list, title):
      for qa in get(paragraph, "qas", list, title):
        name = get(qa, "id", str, title)
        answers = tuple(
          Answer(get(answer, "text", str, name), answer.get("answer_start"))
          for answer in get(qa, "answers", list, name)
        )
        # Scoring needs neither, so `check_convertible` asks for them.
        text, context = qa.get("question"), paragraph.get("context")
        yield Question(name, text, context, answers, qa.get("is_impossible"))


def _fault(path: files.Path, name: Any, what: str) -> errors.UsageError:
  """Returns an error with the line on which the name is in the file."""
  text = files.read_text(path)
  line = text.count("\n", 0, max(0, text.find(json.dumps(name)))) + 1
  return errors.UsageError(f"{path}:{line}: {name}: {what}")
