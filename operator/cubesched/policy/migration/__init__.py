"""From CubeMaster's configuration file to manifests that place as it did.

`yamltree` reads the file into blocks that remember their lines; `keys` is the table of its keys;
`settings`, `legacy_block` and `profiles` translate a part each and note what they could not carry
over; `migrate` puts the objects together and compiles them; `manifests` writes them as YAML. No
I/O here: whoever calls brings the text and writes the files.
"""
