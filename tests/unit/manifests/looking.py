"""Manifests as text, and what a look at them finds."""

from __future__ import annotations

from cubesched.manifests.findings import Report
from cubesched.manifests.judging import Held, judge
from cubesched.manifests.objects import read_objects
from cubesched.manifests.sources import Source
from cubesched.plugins.listing import Surroundings

PROFILE = """\
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata: {name: burst}
spec:
  route: {labels: {workload: burst}}
"""


def report_of(*texts: str, held: Held | None = None, around: Surroundings | None = None) -> Report:
    """Look at files a.yaml, b.yaml, ... with these texts."""
    sources = [Source(f"{chr(97 + index)}.yaml", text) for index, text in enumerate(texts)]
    found = [item for source in sources for item in read_objects(source)]
    return judge(found, held or Held(), around or Surroundings())


def lines_of(*texts: str, held: Held | None = None) -> list[str]:
    """Return findings as `a.yaml:3 the text`."""
    findings = report_of(*texts, held=held).findings
    return [
        f"{f.source or 'cluster'}{f':{f.place.line}' if f.place else ''} {f.text}" for f in findings
    ]


def profile(name: str = "burst", *, spec: str = "", kind: str = "SchedulerProfile") -> str:
    """Return a manifest whose spec, indented by two, begins in line 5."""
    spec = spec or f"  route: {{labels: {{workload: {name}}}}}\n"
    head = f"apiVersion: cubesched.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
    return f"{head}spec:\n{spec}"
