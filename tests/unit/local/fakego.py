"""A stand-in for the Go compiler: says a version, and "builds" by writing files."""

from __future__ import annotations

from pathlib import Path

_SCRIPT = """\
#!/bin/sh
case "$1" in
env) echo {version}; exit 0 ;;
esac
echo run >> {log}
echo "go: downloading example.com/a v1.0.0"
echo example.com/a
{failure}
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
for package in "$@"; do
  case "$package" in */v3) package=${{package%/v3}} ;; esac
  echo "$package" > "$out${{package##*/}}"
done
"""


def install_fake_go(folder: Path, *, version: str = "go1.99.1", failure: str = "") -> Path:
    """Write the script to `folder/go`; return the file that gets one line a build."""
    log = folder / "builds.log"
    log.touch()
    go = folder / "go"
    go.write_text(_SCRIPT.format(version=version, log=log, failure=failure))
    go.chmod(0o755)
    return log
