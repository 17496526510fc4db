"""The documentation: links, anchors, Python blocks and commands are real.

A page is read as Markdown, so that code, links and headings are told apart as
GitHub does. `docs/results/` is written by programs: only its links are checked.
"""

import ast
import collections
import dataclasses
import json
import pathlib
import re
import shlex
import subprocess
import sys

from absl import flags
import markdown_it
import pytest
import yaml

import swe_tf
from swe_tf import cli
from swe_tf.commands import options as options_lib

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_DOCS = _ROOT / "docs"
_ALL = sorted(
  [*_ROOT.glob("*.md"), *_DOCS.rglob("*.md"), _ROOT / "experiments/README.md"]
)
_WRITTEN = [page for page in _ALL if _DOCS / "results" not in page.parents]
_NOT_EXECUTED = re.compile(r"<!-- not executed: \S.* -->\n")
# What stands for a value of the reader's: DIR, N, $X, i/n, ...
_PLACEHOLDER = re.compile(r"\$|\.\.\.|^[A-Z_]+$|^i/n$")

_on_each_page = pytest.mark.parametrize(
  "page", _WRITTEN, ids=lambda page: str(page.relative_to(_ROOT))
)


def _parse(page):
  markdown = markdown_it.MarkdownIt("commonmark").enable("table")
  return markdown.parse(page.read_text(encoding="utf-8"))


def _inline(page):
  for token in _parse(page):
    yield from token.children or ()


def _anchors(page):
  """Returns the anchors that GitHub gives the headings of a page."""
  tokens, found, seen = _parse(page), set(), collections.Counter()
  for token, content in zip(tokens, tokens[1:]):
    if token.type != "heading_open":
      continue
    text = "".join(child.content for child in content.children)
    slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
    seen[slug] += 1
  return found


def _links(page):
  for token in _inline(page):
    target = token.attrs.get("href") or token.attrs.get("src")
    if target and not re.match(r"[a-z]+:", target):
      yield target


@pytest.mark.parametrize(
  "page", _ALL, ids=lambda page: str(page.relative_to(_ROOT))
)
def test_links_resolve(page):
  for link in _links(page):
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    assert target.exists(), f"{link}: no such file"
    if anchor:
      assert anchor in _anchors(target), f"{link}: no such heading"


def test_the_index_links_every_page():
  index = _DOCS / "index.md"
  linked = {(_DOCS / link).resolve() for link in _links(index)}
  pages = {page for page in _WRITTEN if _DOCS in page.parents} - {index}
  assert not {str(page.relative_to(_ROOT)) for page in pages - linked}


def test_the_readme_is_short():
  assert len((_ROOT / "README.md").read_text(encoding="utf-8").split()) <= 800


@pytest.mark.parametrize(
  "page",
  _WRITTEN,
  ids=lambda page: str(page.relative_to(_ROOT)),
)
def test_prose_has_80_columns(page):
  lines = page.read_text(encoding="utf-8").splitlines()
  code = set()
  for token in _parse(page):
    if token.type in ("fence", "code_block", "table_open"):
      code |= set(range(*token.map))
  for number, line in enumerate(lines):
    # A formula cannot be broken.
    assert number in code or len(re.sub(r"\$[^$]+\$", "", line)) <= 80, line


def _python_blocks(page):
  """Yields the code of each block to run, with its place in the page."""
  tokens = _parse(page)
  for before, token in zip([None, *tokens], tokens):
    if token.type != "fence" or token.info.strip() != "python":
      continue
    if before is None or not _NOT_EXECUTED.match(before.content):
      yield "\n" * (token.map[0] + 1) + token.content


_RUN = """
import json, sys
for page, blocks in json.load(sys.stdin):
  names = {"__name__": page}
  for block in blocks:
    exec(compile(block, page, "exec"), names)
  print("ran", page, len(blocks))
"""


def test_python_blocks_run(tmp_path):
  pages = [
    (str(page.relative_to(_ROOT)), list(_python_blocks(page)))
    for page in _WRITTEN
  ]
  pages = [(name, blocks) for name, blocks in pages if blocks]
  assert len(pages) >= 5
  done = subprocess.run(
    [sys.executable, "-c", _RUN],
    input=json.dumps(pages),
    cwd=tmp_path,
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  assert done.stdout.count("ran ") == len(pages)


# The stock driver's flags are those of swe train.
_TRAIN = (
  ["python", "-m", "swe_tf.train"],
  ["python", "-m", "official.nlp.train"],
)


def _split(code):
  """Returns the commands of shell code, each as a list of its words."""
  code = re.sub(r"(?m)(^|\s)# .*$", "", code.replace("\\\n", ""))
  code = re.sub(r"\[(--\w+=[^]\s]*)\]", r"\1", code)  # Optional flags.
  lexer = shlex.shlex(code, posix=True, punctuation_chars="();<>|&\n")
  lexer.whitespace, lexer.commenters = " \t\r", ""
  lexer.whitespace_split = True
  commands = [[]]
  for word in lexer:
    if set(word) <= set("();<>|&\n"):
      commands.append([])
    else:
      commands[-1].append(word)
  return commands


def _find(words):
  """Returns the words from `swe`, `python`, `pytest` or `make` on."""
  for start, word in enumerate(words):
    for train in _TRAIN:
      if words[start : start + 3] == train:
        return ["swe", "train", *words[start + 3 :]]
    if word in ("swe", "python", "pytest", "make"):
      return words[start:]
    if "=" not in word and word not in ("do", "until", "!"):
      return []
  return []


@dataclasses.dataclass(frozen=True)
class _Command:
  """A command of a page, and whether it stands in running text."""

  words: list[str]
  in_text: bool


def _is_shell(token):
  if token.type == "fence":
    return token.info.strip() in ("bash", "sh")
  # What is indented may be a list of files, too.
  calls = r"(?m)^ *(swe|python|pytest|make) "
  return token.type == "code_block" and re.search(calls, token.content)


def _commands(page):
  for token in _parse(page):
    if _is_shell(token):
      for words in _split(token.content):
        yield _Command(_find(words), in_text=False)
    for child in token.children or ():
      if child.type == "code_inline":
        try:
          commands = _split(child.content)
        except ValueError:  # No shell code: an unmatched quote.
          continue
        for words in commands:
          yield _Command(_find(words), in_text=True)


def _flags_of(command):
  # swe train has the flags of swe doctor, which starts without TensorFlow.
  module = cli.load("doctor" if command == "train" else command)
  values = flags.FlagValues()
  for options_cls in (module.Options, cli._Common):
    options_lib.define_flags(options_cls, values)
  return values


def _check_swe(words, in_text):
  """Checks a call of swe: the command, its flags, and their values."""
  command, arguments = cli.split_command(words)
  if not command:
    if not words or words[0] in ("--help", "--version", "COMMAND"):
      return
    name = words[0]
    assert in_text and any(each.startswith(f"{name} ") for each in cli.COMMANDS)
    return
  known = _flags_of(command)
  for argument in arguments:
    name, _, value = argument.removeprefix("--").partition("=")
    if not argument.startswith("--"):
      _check_path(argument)
    elif name != "help":
      assert name in known, f"swe {command} has no flag --{name}"
      if value and not _PLACEHOLDER.search(value):
        known[name].parser.parse(value)
        _check_path(value)


def _check_path(value):
  """Checks a file of the repository that a command names."""
  if re.match(r"(examples|experiments|gin|tests)/[a-z\d_./-]+$", value):
    assert (_ROOT / value).exists(), f"{value}: no such file"


def _check_module(name):
  if name.split(".")[0] in ("swe_tf", "experiments", "benchmarks", "tests"):
    path = _ROOT.joinpath(*name.split("."))
    assert path.is_dir() or path.with_suffix(".py").exists(), name


_MAKE = set(
  re.findall(
    r"(?m)^([\w-]+):", (_ROOT / "Makefile").read_text(encoding="utf-8")
  )
)


@_on_each_page
def test_commands_exist(page):
  for command in _commands(page):
    if not command.words:
      continue
    program, *words = command.words
    try:
      if program == "swe":
        _check_swe(words, command.in_text)
      elif program == "python" and words[:1] == ["-m"]:
        _check_module(words[1])
      elif program in ("pytest", "python"):
        for word in words:
          _check_path(word)
      elif program == "make" and words:
        assert words[0] in _MAKE
    except (AssertionError, ValueError) as error:
      raise AssertionError(f"{' '.join(command.words)}: {error}") from error


def _fields(module, name):
  """Returns the fields of a config, without importing Model Garden."""
  source = (_ROOT / "swe_tf/methods" / module).read_text(encoding="utf-8")
  for node in ast.parse(source).body:
    if isinstance(node, ast.ClassDef) and node.name == name:
      assigned = [each for each in node.body if isinstance(each, ast.AnnAssign)]
      return {each.target.id for each in assigned}
  raise AssertionError(f"{module} has no {name}")


_FIELDS = {
  "sharing": _fields("config.py", "SharingConfig"),
  "growth": _fields("config.py", "GrowthConfig"),
}


@_on_each_page
def test_fields_of_the_config_exist(page):
  text = page.read_text(encoding="utf-8")
  for table, fields in _FIELDS.items():
    named = set(re.findall(rf"\btask\.{table}\.([a-z_]+)", text))
    assert named <= fields


def test_gains_in_the_cards_are_those_of_the_map():
  measured = r"-?\d+\.\d+ \((?:-?\d+\.\d+ to -?\d+\.\d+|one seed)\)"
  known = (_DOCS / "map.md").read_text(encoding="utf-8")
  for card in (_DOCS / "cards").glob("*.md"):
    for number in re.findall(measured, card.read_text(encoding="utf-8")):
      assert number in known, f"{card.name}: {number} is not in map.md"


def test_the_citation_is_valid():
  text = (_ROOT / "CITATION.cff").read_text(encoding="utf-8")
  citation = yaml.safe_load(text)
  for work in (citation, citation["preferred-citation"]):
    assert work["title"] and work["authors"]
    assert all({"name", "family-names"} & set(a) for a in work["authors"])
  assert citation["cff-version"] == "1.2.0" and citation["message"]
  assert citation["version"] == swe_tf.__version__
