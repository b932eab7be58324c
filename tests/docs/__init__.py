"""The reference pages of docs/reference, made from the code; `make docs` writes them, a test finds those that are stale."""
