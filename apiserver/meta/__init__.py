"""metav1: what all kinds share. The lowest layer of the server; may use `openapi` only."""
