"""What the server counts, and how that is written down for Prometheus, under the names that kube-apiserver uses.

Counting costs a dictionary look-up and some additions; everything else is done when somebody asks. Names and labels that came from a
client are never labels: what nobody serves is counted as `other`, so that no client can make the series grow.
"""
