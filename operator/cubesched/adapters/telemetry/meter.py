"""Counting: every metric of the table in a registry of its own, so that two never collide."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from cubesched.adapters.telemetry.table import METRICS, Kind, Metric, Program
from cubesched.adapters.version import program_version

Instrument = Counter | Gauge | Histogram
Values = tuple[str, ...]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Meter:
    """One process's metrics; names and labels outside the table raise KeyError or ValueError."""

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        program: Program = Program.OPERATOR,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry if registry is not None else CollectorRegistry()
        metrics = [metric for metric in METRICS if program in metric.programs]
        self._labels = {metric.name: metric.labels for metric in metrics}
        self._families = {metric.name: self._build(metric) for metric in metrics}
        self._series: dict[str, dict[Values, Instrument]] = {name: {} for name in self._labels}
        self._refreshers: list[Callable[[], None]] = []
        python = platform.python_version()
        self.set("cubesched_build_info", 1, version=program_version(), python=python)

    def _build(self, metric: Metric) -> Instrument:
        match metric.kind:
            case Kind.COUNTER:
                return Counter(metric.name, metric.help, metric.labels, registry=self.registry)
            case Kind.GAUGE:
                return Gauge(metric.name, metric.help, metric.labels, registry=self.registry)
            case Kind.HISTOGRAM:
                return Histogram(
                    metric.name,
                    metric.help,
                    metric.labels,
                    registry=self.registry,
                    buckets=metric.buckets,
                )

    def inc(self, name: str, value: float = 1, **labels: str) -> None:
        """Raise a counter."""
        instrument = self._at(name, labels)
        assert isinstance(instrument, Counter)
        instrument.inc(value)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add one observation, in seconds, to a histogram."""
        instrument = self._at(name, labels)
        assert isinstance(instrument, Histogram)
        instrument.observe(value)

    def recorder(self, name: str, **labels: str) -> Callable[[float], None]:
        """Return where to add observations to one series, its labels looked up only once."""
        instrument = self._at(name, labels)
        assert isinstance(instrument, Histogram)
        return instrument.observe

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        instrument = self._at(name, labels)
        assert isinstance(instrument, Gauge)
        instrument.set(value)

    def forget(self, name: str, **labels: str) -> None:
        """Remove the series of a metric whose labels have these values; all when none is given."""
        names = self._labels[name]
        wanted = [(names.index(label), value) for label, value in labels.items()]
        for values in list(self._series[name]):
            if all(values[index] == value for index, value in wanted):
                del self._series[name][values]
                if names:
                    self._families[name].remove(*values)

    def forget_profile(self, profile: str) -> None:
        """Remove every series of a Profile that is gone."""
        for name, labels in self._labels.items():
            if "profile" in labels:
                self.forget(name, profile=profile)

    def before_scrape(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` before each exposition: for gauges that nobody sets when they change."""
        self._refreshers.append(refresh)

    def exposition(self) -> bytes:
        """Return everything as Prometheus scrapes it."""
        for refresh in self._refreshers:
            refresh()
        return generate_latest(self.registry)

    def _at(self, name: str, labels: dict[str, str]) -> Instrument:
        """Return the series with these labels, made at its first use."""
        names = self._labels[name]
        values = tuple([labels[label] for label in names])
        if len(labels) != len(names):
            raise ValueError(f"{name} has the labels {names}, not {tuple(labels)}")
        series = self._series[name]
        found = series.get(values)
        if found is None:
            family = self._families[name]
            found = series[values] = family.labels(*values) if names else family
        return found
