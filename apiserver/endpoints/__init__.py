"""One module per verb, and discovery, OpenAPI, health: a parsed request comes in, a response goes out. Knows no kind and no store."""
