"""A store in etcd, for production and for several replicas of the server. Everything that knows gRPC and etcd is in here.

Policy: a write is one transaction whose failure branch returns what is there; every read is linearizable.
"""

from storage.etcd.config import EtcdConfig
from storage.etcd.etcd_store import EtcdStore

__all__ = ["EtcdConfig", "EtcdStore"]
