"""A real control plane on this machine, for the demo, the tests and trying things out.

Programs are found or built once (`binaries`, `build`, `toolchain`); one `LocalControlPlane` runs
them in a directory of its own (`controlplane`, `commands`, `pki`), under a supervisor that lets
nothing outlive its purpose (`supervisor`, `children`).
"""

from cubesched.local.controlplane import LocalControlPlane

__all__ = ["LocalControlPlane"]
