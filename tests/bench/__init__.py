"""The bench that compares: the same work done by kube-apiserver, by the Go sample-apiserver and by us, on one machine in one run."""
