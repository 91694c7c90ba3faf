from __future__ import annotations

from cubesched.adapters.telemetry.table import METRICS
from cubesched.generate.metrics import metrics_page


def test_every_metric_stands_on_the_page_with_its_type_and_labels() -> None:
    page = metrics_page()

    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        assert f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.help} |" in page


def test_the_buckets_of_each_histogram_are_told() -> None:
    histograms = [metric.name for metric in METRICS if metric.buckets]

    listed = [line for line in metrics_page().splitlines() if line.startswith("* ")]
    assert [line.split("`")[1] for line in listed] == histograms
