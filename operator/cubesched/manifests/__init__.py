"""Manifest files: read with the place of every field, and judged by the operator's own code.

`tree` and `scalars` read YAML as kubectl does; `sources` collects files; `documents` finds the
objects in them; `judging` lets the policy compiler and the models have their say.
"""
