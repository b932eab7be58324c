"""The same exchanges with a real kube-apiserver and with this server, and what differs."""
