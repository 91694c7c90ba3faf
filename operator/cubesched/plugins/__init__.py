"""Filters and scores: the table of built-in ones, and what every kind has in common."""
