"""The audit log: who asked for what, and what came of it, in the format of Kubernetes' audit.k8s.io/v1.

On the event loop an event is a few references in a bounded queue; a thread makes lines of them and writes.
Source: https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
"""
