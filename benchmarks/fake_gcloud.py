"""The part of gcloud that the scripts of `swe launch` call, on this machine.

A `file://` URL is the bucket. A "TPU VM" is a process group that runs the
startup script; a file `preempted` in its folder, left by whoever killed it,
makes it SUSPENDED. Only `benchmarks.rehearsal` uses this, as `gcloud` on PATH.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

_VMS = pathlib.Path(os.environ.get("FAKE_GCLOUD_DIR", "."))


def _local(url: str) -> pathlib.Path:
  return pathlib.Path(url.removeprefix("file://"))


def _flags(arguments: list[str]) -> dict[str, str]:
  parts = (each[2:].partition("=") for each in arguments if each[:2] == "--")
  return {name: value for name, _, value in parts}


def storage(verb: str, *arguments: str) -> None:
  """`gcloud storage`: buckets, cp and cat."""
  if verb == "buckets":
    what, url = arguments[:2]
    if what == "create":
      _local(url).mkdir(parents=True)
    elif not _local(url).is_dir():
      sys.exit(1)
  elif verb == "cat":
    if not _local(arguments[0]).exists():
      sys.exit(1)
    print(_local(arguments[0]).read_text(), end="")
  else:
    *sources, target = arguments
    place = _local(target)
    if target.endswith("/"):
      place.mkdir(parents=True, exist_ok=True)
    for source in sources:
      if source == "-":
        place.write_bytes(sys.stdin.buffer.read())
      else:
        shutil.copy(_local(source), place)


def queued_resources(verb: str, *arguments: str) -> None:
  """`gcloud compute tpus queued-resources`: create, list and delete."""
  flags = _flags(list(arguments))
  if verb == "list":
    for vm in _VMS.iterdir():
      print("SUSPENDED" if (vm / "preempted").exists() else "ACTIVE")
  elif verb == "create":
    vm = _VMS / arguments[0]
    vm.mkdir()
    script = flags["metadata-from-file"].removeprefix("startup-script=")
    with (_VMS.parent / f"{vm.name}_vm.txt").open("ab") as log:
      process = subprocess.Popen(
        ["bash", os.path.abspath(script)],
        cwd="/",
        stdout=log,
        stderr=log,
        start_new_session=True,
      )
    (vm / "pid").write_text(str(process.pid))
  else:
    vm = _VMS / arguments[0]
    with contextlib.suppress(ProcessLookupError):
      os.killpg(int((vm / "pid").read_text()), signal.SIGKILL)
    shutil.rmtree(vm)


def main(arguments: list[str]) -> None:
  """Runs one call of gcloud."""
  if arguments[0] == "storage":
    storage(*arguments[1:])
  else:
    queued_resources(*arguments[3:])


if __name__ == "__main__":
  main(sys.argv[1:])
