"""The documentation: links, anchors, commands and fields are real.

A page is read as Markdown, so that code, links and headings are told apart as
GitHub does. `docs/results/` is written by programs: only its links are checked.
"""

import collections
import pathlib
import re
import shlex

import markdown_it
import pytest
import yaml

from benchmarks import rehearsal
import swe_tf
from swe_tf import cli
from swe_tf.methods import config as config_lib

ROOT = pathlib.Path(__file__).resolve().parents[1]
_DOCS = ROOT / "docs"
_ALL = sorted(
  [*ROOT.glob("*.md"), *_DOCS.rglob("*.md"), ROOT / "experiments/README.md"]
)
WRITTEN = [page for page in _ALL if _DOCS / "results" not in page.parents]
# What stands for a value of the reader's: DIR, N, $X, i/n, ...
_PLACEHOLDER = re.compile(r"\$|\.\.\.|^[A-Z_]+$|^i/n$")
_MAKE = re.findall(
  r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")
)
_PACKAGES = ("swe_tf", "experiments", "benchmarks", "tests")
# The stock driver's flags are those of swe train.
_TRAIN = re.compile(r"python -m (swe_tf|official\.nlp)\.train\b")


def _on_each(pages):
  return pytest.mark.parametrize(
    "page", pages, ids=lambda page: str(page.relative_to(ROOT))
  )


def parse(page):
  """Returns the Markdown tokens of a page."""
  markdown = markdown_it.MarkdownIt("commonmark").enable("table")
  return markdown.parse(page.read_text(encoding="utf-8"))


def _anchors(page):
  """Returns the anchors that GitHub gives the headings of a page."""
  tokens, found, seen = parse(page), set(), collections.Counter()
  for token, content in zip(tokens, tokens[1:]):
    if token.type == "heading_open":
      text = "".join(child.content for child in content.children)
      slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
      found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
      seen[slug] += 1
  return found


def _links(page):
  for token in parse(page):
    for child in token.children or ():
      target = child.attrs.get("href") or child.attrs.get("src")
      if target and not re.match(r"[a-z]+:", target):
        yield target


@_on_each(_ALL)
def test_links_resolve(page):
  for link in _links(page):
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    assert target.exists(), f"{link}: no such file"
    assert not anchor or anchor in _anchors(target), f"{link}: no such heading"


def test_the_index_links_every_page_and_the_readme_is_short():
  index = _DOCS / "index.md"
  linked = {(_DOCS / link).resolve() for link in _links(index)}
  pages = {page for page in WRITTEN if _DOCS in page.parents} - {index}
  assert not {str(page.relative_to(ROOT)) for page in pages - linked}
  assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 800


@_on_each(WRITTEN)
def test_a_page_has_at_most_1200_words_in_80_columns(page):
  apart = set()  # Code and tables.
  for token in parse(page):
    if token.type in ("fence", "code_block", "table_open"):
      apart |= set(range(*token.map))
  lines = page.read_text(encoding="utf-8").splitlines()
  prose = [line for i, line in enumerate(lines) if i not in apart]
  assert sum(len(line.split()) for line in prose) <= 1200
  for line in prose:
    # A formula cannot be broken.
    assert len(re.sub(r"\$[^$]+\$", "", line)) <= 80, line


def _split(code):
  """Returns the commands of shell code, each as a list of its words."""
  code = re.sub(r"(?m)(^|\s)# .*$", "", code.replace("\\\n", ""))
  code = re.sub(r"\[(--\w+=[^]\s]*)\]", r"\1", code)  # Optional flags.
  lexer = shlex.shlex(
    _TRAIN.sub("swe train", code), posix=True, punctuation_chars="();<>|&\n"
  )
  lexer.whitespace, lexer.commenters = " \t\r", ""
  lexer.whitespace_split = True
  commands = [[]]
  for word in lexer:
    if set(word) <= set("();<>|&\n"):
      commands.append([])
    else:
      commands[-1].append(word)
  return commands


def _commands(page):
  """Yields the words of each command, and whether it is in running text."""
  for token in parse(page):
    codes = [
      (child.content, True)
      for child in token.children or ()
      if child.type == "code_inline"
    ]
    # What is indented may be a list of files, too.
    calls = r"(?m)^ *(swe|python|pytest|make) "
    if (token.type == "fence" and token.info.strip() in ("bash", "sh")) or (
      token.type == "code_block" and re.search(calls, token.content)
    ):
      codes.append((token.content, False))
    for code, in_text in codes:
      try:
        commands = _split(code)
      except ValueError:  # No shell code: an unmatched quote.
        assert in_text, code
        continue
      for words in commands:
        # In front of a command may be variables, or the start of a loop.
        while words and ("=" in words[0] or words[0] in ("do", "until", "!")):
          words = words[1:]
        yield words, in_text


def _check_swe(words, in_text):
  """Checks a call of swe: the command, its flags, and their values."""
  command, arguments = cli.split_command(words)
  if not command:
    name = words[0] if words else "COMMAND"
    assert name in ("--help", "--version", "COMMAND") or (
      in_text and any(each.startswith(f"{name} ") for each in cli.COMMANDS)
    )
    return
  known = cli.make_flags(command, cli.load(command))
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
    assert (ROOT / value).exists(), f"{value}: no such file"


@_on_each(WRITTEN)
def test_commands_exist(page):
  for command, in_text in _commands(page):
    program, *words = command or [""]
    try:
      if program == "swe":
        _check_swe(words, in_text)
      elif program == "python" and words[:1] == ["-m"]:
        path = ROOT.joinpath(*words[1].split("."))
        ours = path.relative_to(ROOT).parts[0] in _PACKAGES
        assert not ours or path.is_dir() or path.with_suffix(".py").exists()
      elif program in ("pytest", "python"):
        for word in words:
          _check_path(word)
      elif program == "make" and words:
        assert words[0] in _MAKE
    except (AssertionError, ValueError) as error:
      raise AssertionError(f"{' '.join(command)}: {error}") from error


@_on_each(WRITTEN)
def test_fields_of_the_config_exist(page):
  text = page.read_text(encoding="utf-8")
  for config in (config_lib.SharingConfig(), config_lib.GrowthConfig()):
    table = type(config).__name__.removesuffix("Config").lower()
    named = set(re.findall(rf"\btask\.{table}\.([a-z_]+)", text))
    assert named <= config.as_dict().keys()


def test_the_citation_is_valid():
  text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
  citation = yaml.safe_load(text)
  for work in (citation, citation["preferred-citation"]):
    assert work["title"] and work["authors"]
    assert all({"name", "family-names"} & set(a) for a in work["authors"])
  assert citation["cff-version"] == "1.2.0" and citation["message"]
  assert citation["version"] == swe_tf.__version__


def test_the_rehearsal_runs_or_leaves_out_every_command_of_the_tpu_guide():
  found = list(rehearsal.commands())
  replacements = rehearsal.replacements(pathlib.Path("/somewhere"))
  run = [command for command in found if rehearsal.left_out(command) is None]
  assert len(run) >= 11
  for command in run:
    assert re.match(r"(swe|until|bash|[A-Z]+=)", command), command
    # What stands for a value of the reader's is replaced.
    for old, new in replacements.items():
      command = command.replace(old, new)
    assert not re.search(r"\.\.\.|BUCKET|HOST", command), command
  text = "\n".join(found)
  assert [old for old in replacements if old not in text] == []
  for start in rehearsal.LEFT_OUT:
    assert re.search(f"(?m)^{re.escape(start)}", text), start
