"""Routing records in Redis: written by replicas, read by proxies."""
