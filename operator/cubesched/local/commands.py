"""The command line of each process. Loopback only; etcd is not on the network at all.

Relative paths are the instance's directory, which is the working directory of every process.
"""

from __future__ import annotations

from pathlib import Path

from cubesched.local.binaries import Binaries

ETCD_SOCKET = "etcd.sock:0"
"""etcd reads a Unix address as host:port, so the socket's name has to look like one."""

_CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "validatingadmissionpolicy-status-controller",
    "resourcequota-controller",
    "ttl-after-finished-controller",
)


def etcd(binaries: Binaries) -> list[str]:
    """Run etcd on a socket that only this user can reach; no fsync, as its data is thrown away."""
    return [
        str(binaries.etcd),
        "--name=local",
        "--data-dir=etcd",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls=unix://{ETCD_SOCKET}",
        f"--advertise-client-urls=unix://{ETCD_SOCKET}",
        "--listen-peer-urls=unix://etcd-peer.sock:0",
        "--initial-advertise-peer-urls=unix://etcd-peer.sock:0",
        "--initial-cluster=local=unix://etcd-peer.sock:0",
        "--quota-backend-bytes=8589934592",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=1h",
    ]


def kube_apiserver(binaries: Binaries, *, port: int) -> list[str]:
    """Run the API server as clusters do: RBAC, default admission, client certificates, tokens."""
    return [
        str(binaries.kube_apiserver),
        f"--etcd-servers=unix://{ETCD_SOCKET}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        "--tls-cert-file=pki/server.crt",
        "--tls-private-key-file=pki/server.key",
        "--client-ca-file=pki/ca.crt",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--service-account-key-file=pki/service-account.pub",
        "--service-account-signing-key-file=pki/service-account.key",
    ]


def kube_controller_manager(binaries: Binaries) -> list[str]:
    """Run the controllers that a cluster without machines needs, each under its own account."""
    return [
        str(binaries.kube_controller_manager),
        "--kubeconfig=kube-controller-manager.kubeconfig",
        f"--controllers={','.join(_CONTROLLERS)}",
        "--use-service-account-credentials",
        "--service-account-private-key-file=pki/service-account.key",
        "--root-ca-file=pki/ca.crt",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def redis_server(binaries: Binaries, *, port: int, directory: Path) -> list[str]:
    """Run Redis without persistence: node metrics are worth nothing after a restart."""
    return [
        str(binaries.redis_server),
        *("--bind", "127.0.0.1"),
        *("--port", str(port)),
        *("--appendonly", "no"),
        *("--save", ""),
        *("--dir", str(directory)),
    ]
