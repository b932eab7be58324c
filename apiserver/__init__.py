"""An aggregated Kubernetes API server. A request enters in `app` and goes down: filters, endpoints, registry, storage."""
