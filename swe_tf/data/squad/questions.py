"""Reads SQuAD files; errors name the file, the line and the question.

Scoring needs ids and answers; records also need every answer to be where
`answer_start` says (`check_convertible`). Imports no TensorFlow.
"""

import codecs
from collections.abc import Iterator
import dataclasses
import json
from typing import Any, NamedTuple

from swe_tf import errors
from swe_tf import files

VERSIONS = ("1.1", "2.0")


class Answer(NamedTuple):
  """An answer by one annotator, and where it starts in the context."""

  text: str
  start: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
  """A question about a paragraph; without answers if there is none (v2.0)."""

  id: str
  text: str | None
  context: str | None
  answers: tuple[Answer, ...]
  is_impossible: bool | None


@dataclasses.dataclass(frozen=True)
class SquadFile:
  """The questions of one file, in order."""

  path: files.Path
  version: str
  questions: tuple[Question, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
  """How a question and its paragraph become sequences, as BERT does it."""

  max_seq_length: int = 384
  max_query_length: int = 64  # Longer questions are cut.
  doc_stride: int = 128  # How far windows over a long paragraph advance.

  def __post_init__(self):
    # [CLS] question [SEP] paragraph [SEP].
    if self.max_seq_length - self.max_query_length - 3 < 1:
      raise errors.UsageError(
        f"max_seq_length ({self.max_seq_length}) leaves no token for the "
        f"paragraph after max_query_length ({self.max_query_length}) and 3 "
        "special tokens; raise the former or lower the latter."
      )


def read_squad_file(path: files.PathLike, version: str) -> SquadFile:
  """Reads a SQuAD JSON file, and checks what scoring needs."""
  path = files.as_path(path)
  questions: dict[str, Question] = {}
  for question in _questions(path, files.read_json(path)):
    if question.id in questions:
      raise _fault(path, question.id, "the id is used twice.")
    if version == "1.1" and not question.answers:
      what = "no answers, but in v1.1 every question has one; is this v2.0?"
      raise _fault(path, question.id, what)
    questions[question.id] = question
  if not questions:
    raise errors.UsageError(f"{path} has no questions.")
  return SquadFile(path, version, tuple(questions.values()))


def check_convertible(squad: SquadFile, *, for_training: bool) -> None:
  """Checks what conversion to records relies on, such as `answer_start`."""
  with files.open_binary(squad.path) as file:
    if file.read(3) == codecs.BOM_UTF8:
      raise errors.UsageError(
        f"{squad.path} begins with a byte order mark, which Model Garden does "
        "not read; save it as UTF-8 without one."
      )
  for question in squad.questions:
    count, fault = len(question.answers), ""
    given = {"question": question.text, "context": question.context}
    missing = [name for name in given if not isinstance(given[name], str)]
    if missing:
      fault = f'no "{missing[0]}" of text.'
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
      for text, start in question.answers:
        if not text.strip():
          fault = "an answer is empty; remove it."
          break
        if type(start) is not int or start < 0:
          fault = f"the answer {text!r} has no valid answer_start."
          break
        found = str(question.context)[start : start + len(text)]
        if found != text:
          fault = (
            f"the answer {text!r} is not in its context at answer_start "
            f"{start}, where {found!r} stands; correct answer_start or remove "
            "the question."
          )
          break
    if fault:
      raise _fault(squad.path, question.id, fault)


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
