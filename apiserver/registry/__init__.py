"""The rules of one resource over one store: no HTTP. What the store raises becomes an APIError here, in one table."""
