"""Builds the site from the repository: `make docs`.

The pages link to each other and to files of the repository, as they do when
read in the repository. Here README becomes the front page, docs/index.md the
navigation, a linked file of the repository a page that shows it, and a module
of `swe_tf` a page of the API. `mkdocs build --strict` fails on a broken link.
"""

import os
import pathlib
import posixpath
import re

from mkdocs.structure import files as mkdocs_files

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
# What is found in code comes after what is found in pages.
_LATE = "---\nsearch: {boost: 0.001}\n---\n"
# Pages that stand outside of docs/, and the front page.
_PAGES = {
  "README.md": "index.md",
  "CONTRIBUTING.md": "contributing.md",
  "CHANGELOG.md": "changelog.md",
  "experiments/README.md": "experiments-index.md",
  "docs/index.md": "contents.md",
}


def _uri(path: pathlib.Path) -> str:
  """Returns where the site shows a file or folder of the repository."""
  name = path.relative_to(ROOT).as_posix()
  if name in _PAGES:
    return _PAGES[name]
  if name.startswith("docs/") and (path.suffix in (".md", ".png")):
    return name.removeprefix("docs/")
  return f"source/{name}.md"


def _links(markdown: str) -> list[re.Match[str]]:
  return [
    link
    for part in _FENCE.split(markdown)[::2]  # Not in code.
    for link in _LINK.finditer(part)
    if "://" not in link[2] and not link[2].startswith("mailto:")
  ]


def _rewrite(markdown: str, path: pathlib.Path, uri: str) -> str:
  """Makes the links of a page those of the site."""
  start = posixpath.dirname(uri)

  def replace(link: re.Match[str]) -> str:
    target = pathlib.Path(os.path.normpath(path.parent / link[2]))
    if "://" in link[2] or not target.exists():
      return link[0]  # A broken one is for mkdocs to report.
    relative = posixpath.relpath(_uri(target), start or ".")
    return f"{link[1]}({relative}{link[3] or ''})"

  parts = _FENCE.split(markdown)
  parts[::2] = [_LINK.sub(replace, part) for part in parts[::2]]
  return "".join(parts)


def _source(path: pathlib.Path) -> str:
  """Returns a page that shows a file, or lists a folder."""
  name = path.relative_to(ROOT).as_posix()
  if path.is_dir():
    inside = sorted(p.name for p in path.iterdir() if p.name[0] not in "._")
    return f"# {name}/\n\n" + "\n".join(f"- `{each}`" for each in inside) + "\n"
  language = {".py": "python", ".yaml": "yaml", ".json": "json"}
  text = path.read_text(encoding="utf-8")
  code = f"```{language.get(path.suffix, 'text')}\n{text.rstrip()}\n```\n"
  return f"{_LATE}# {name}\n\n{code}"


def _modules() -> list[str]:
  """Returns the modules of the package, without those of commands."""
  found = []
  for path in sorted((ROOT / "swe_tf").rglob("*.py")):
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[-1] != "__init__" and parts[1] not in ("experiments", "gin"):
      found.append(".".join(parts))
  return found


def _title(link_text: str) -> str:
  words = " ".join(link_text.strip("[]").split())
  return words[0].upper() + words[1:]


def on_config(config):
  """Makes the headings and links of docs/index.md the navigation."""
  nav: list = [{"Home": "index.md"}]
  text = (DOCS / "index.md").read_text(encoding="utf-8")
  for section in text.split("\n## ")[1:]:
    title, _, body = section.partition("\n")
    pages = [
      {_title(link[1]): _uri(target)}
      for link in _links(body)
      if (target := (DOCS / link[2]).resolve()).suffix == ".md"
    ]
    nav.append({title: pages})
  rooms: dict[str, list] = {}
  for module in _modules():
    room = module.split(".")[1]
    rooms.setdefault(room, []).append({module: f"api/{module}.md"})
  nav.append({"API": [{room: pages} for room, pages in rooms.items()]})
  config["nav"] = nav
  return config


def on_files(files, config):
  """Adds the pages that are not in docs/."""
  made: dict[str, str] = {}
  for module in _modules():
    made[f"api/{module}.md"] = f"{_LATE}# {module}\n\n::: {module}\n"
  pages = [
    *DOCS.glob("*.md"),
    *DOCS.glob("*/*.md"),
    *map(ROOT.joinpath, _PAGES),
  ]
  for path in pages:
    text = path.read_text(encoding="utf-8")
    made[_uri(path)] = _rewrite(text, path, _uri(path))
    for link in _links(text):
      target = pathlib.Path(os.path.normpath(path.parent / link[2]))
      uri = _uri(target) if target.is_relative_to(ROOT) else ""
      if uri.startswith("source/") and target.exists():
        made[uri] = _source(target)
  for uri, content in made.items():
    old = files.get_file_from_path(uri)
    if old is not None:
      files.remove(old)
    files.append(mkdocs_files.File.generated(config, uri, content=content))
  return files
