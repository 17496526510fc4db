"""The rooms of swe_tf, and who imports whom, read from the source.

    python -m tests.architecture   # brings docs/architecture.md up to date

A room is a folder of swe_tf; files that stand alone are gathered in two rooms,
and `registry.py`, which only imports, belongs to `configs/`.
`test_architecture.py` holds the imports against `ORDER`; the page draws them.
Nothing is imported in order to look.
"""

import ast
from collections.abc import Iterator
import dataclasses
import graphlib
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"

# Rooms import only from the lines above theirs, and rooms of one line do not
# import each other.
BASE, ENTRY = "base", "entry"
ORDER = (
  (BASE,),
  ("modeling",),
  ("data",),
  ("scoring",),
  ("sharing",),
  ("theory",),
  ("training",),
  ("methods",),
  ("tasks",),
  ("configs",),
  ("convert",),
  ("analysis",),
  ("studies", "doctor"),
  ("commands",),
  (ENTRY,),
)
# The rooms of files that stand alone, and what each is for.
_ROOM_OF = {
  **dict.fromkeys(
    ("errors", "files", "yaml_files", "fields", "sameness"), BASE
  ),
  **dict.fromkeys(("plugins", "library", "messages"), BASE),
  **dict.fromkeys(("cli", "train", "__init__"), ENTRY),
  "registry": "configs",
}
_ABOUT = {
  BASE: "Errors for people, files and URLs, YAML, fields of configs, plug-ins.",
  ENTRY: "`swe`, `python -m swe_tf.train`, and the names of `import swe_tf`.",
}
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

_BEGIN, _END = "<!-- rooms: begin -->\n", "<!-- rooms: end -->\n"
_NAMED = re.compile(r"(swe_tf(?:\.\w+)+)(?::\w+)?")


@dataclasses.dataclass(frozen=True)
class Module:
  """A module.

  Attributes:
    name: Its name.
    room: Its room.
    about: The first line of its docstring.
    lines: How many lines it has.
    imports: The names that it imports anywhere, in functions too. What is of
      swe_tf is a module, not what is in it.
    named: The modules of swe_tf that it has in strings, to import them later.
  """

  name: str
  room: str
  about: str
  lines: int
  imports: frozenset[str]
  named: frozenset[str]


Modules = dict[str, Module]


def read(root: pathlib.Path = ROOT) -> Modules:
  """Reads all modules of `root`/swe_tf by name."""
  paths = {}
  for path in sorted((root / "swe_tf").rglob("*.py")):
    parts = path.relative_to(root).with_suffix("").parts
    if parts[1] not in ("experiments", "gin"):  # Links to the folders.
      paths[".".join(parts).removesuffix(".__init__")] = path
  return {name: _module(name, path, set(paths)) for name, path in paths.items()}


def _module(name: str, path: pathlib.Path, known: set[str]) -> Module:
  source = path.read_text(encoding="utf-8")
  tree = ast.parse(source)
  docstring = ast.get_docstring(tree) or ""
  nodes = list(ast.walk(tree))
  strings = (n.value for n in nodes if isinstance(n, ast.Constant))
  matches = (_NAMED.fullmatch(s) for s in strings if isinstance(s, str))
  return Module(
    name=name,
    room=_room_of((name.split(".") + ["__init__"])[1]),
    about=docstring.partition("\n")[0],
    lines=source.count("\n"),
    imports=frozenset(i for n in nodes for i in _imports(n, known)),
    named=frozenset(m[1] for m in matches if m and m[1] in known - {name}),
  )


def _room_of(top: str) -> str:
  return _ROOM_OF.get(top, top)


def _imports(node: ast.AST, known: set[str]) -> Iterator[str]:
  if isinstance(node, ast.Import):
    yield from (alias.name for alias in node.names)
  elif isinstance(node, ast.ImportFrom):
    for alias in node.names:
      full = f"{node.module}.{alias.name}"
      of_us = full.startswith("swe_tf.") and full not in known
      yield str(node.module) if of_us else full


def upward_imports(modules: Modules) -> list[str]:
  """Returns the imports that do not go to a line above in `ORDER`."""
  return [
    f"{module.name} imports {name}"
    for module in modules.values()
    for name in sorted(module.imports | module.named)
    if name in modules
    and module.room != modules[name].room
    and LEVEL[module.room] <= LEVEL[modules[name].room]
  ]


def cycle(modules: Modules) -> list[str]:
  """Returns modules of which each imports the next; empty if there are none."""
  graph = {m.name: m.imports & set(modules) for m in modules.values()}
  try:
    graphlib.TopologicalSorter(graph).prepare()
  except graphlib.CycleError as error:
    return error.args[1][::-1]
  return []


def reach(modules: Modules, room: str) -> set[str]:
  """Returns all that is imported when all modules of a room are."""
  found: set[str] = set()
  todo = [m.name for m in modules.values() if m.room == room]
  while todo:
    name = todo.pop()
    if name not in found:
      found.add(name)
      todo.extend(modules[name].imports if name in modules else ())
  return found


def room_imports(modules: Modules) -> dict[str, list[str]]:
  """Returns the rooms that each room imports, in the order of `ORDER`."""
  found: dict[str, set[str]] = {room: set() for room in LEVEL}
  for module in modules.values():
    for name in module.imports | module.named:
      if name in modules and modules[name].room != module.room:
        found[module.room].add(modules[name].room)
  return {room: sorted(found[room], key=list(LEVEL).index) for room in LEVEL}


def _draw(imports: dict[str, list[str]]) -> Iterator[str]:
  """Yields a Mermaid graph without the arrows that others imply."""
  below: dict[str, set[str]] = {}
  for room in LEVEL:
    below[room] = set().union(*({r} | below[r] for r in imports[room]))
  yield "```mermaid"
  yield "graph BT"
  for room in LEVEL:
    for other in imports[room]:
      if not any(other in below[r] for r in imports[room]):
        yield f"  {room} --> {other}"
  yield "```"


def _table(modules: Modules, imports: dict[str, list[str]]) -> Iterator[str]:
  yield "| room | for | imports | files | lines, about |"
  yield "|---|---|---|---|---|"
  for room in LEVEL:
    inside = [m for m in modules.values() if m.room == room]
    about = _ABOUT.get(room) or modules[f"swe_tf.{room}"].about
    shown = f"`{room}/`"
    if room in _ABOUT:
      files = sorted(name for name, of in _ROOM_OF.items() if of == room)
      shown = ", ".join(f"`{name}.py`" for name in files)
    lines = float(f"{sum(m.lines for m in inside):.2g}")
    yield (
      f"| {shown} | {about} | "
      f"{', '.join(imports[room]) or '-'} | {len(inside)} | {lines:,.0f} |"
    )


def render(page: str, modules: Modules) -> str:
  """Returns the page with the graph and the table of the rooms as they are."""
  begin, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
  imports = room_imports(modules)
  rooms = [*_draw(imports), "", *_table(modules, imports), ""]
  return page[:begin] + "\n".join(rooms) + page[end:]


def without_lines(page: str) -> str:
  """Returns the page without the last column, which every edit may change."""
  return re.sub(r" [\d,]+ \|$", "", page, flags=re.MULTILINE)


if __name__ == "__main__":
  PAGE.write_text(render(PAGE.read_text("utf-8"), read()), "utf-8")
