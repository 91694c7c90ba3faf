"""Plugins of type expr: CEL over the columns of the fleet.

    text -> lexing, parsing (cel-python's parser) -> checking (typed, by the tables in `facts` and
    `functions`) -> one closure an operation, run over whole columns (`values`) -> `plugins`

An error of CEL is a mask beside the values: it is absorbed by `&&`, `||` and `?:` as CEL says, and
looked at only on the rows that matter. Everything outside the tables is refused by name.
"""
