"""The way to the cluster that this server belongs to: kube-apiserver's address, and our own identity there."""
