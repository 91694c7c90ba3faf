"""What operators see: metrics from one table, probes, logs, stalls of the event loop."""
