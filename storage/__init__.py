"""Bytes under keys, with revisions and watch.

Knows no HTTP, no JSON and no kinds. `store.py` is the contract; `memory`, `sqlite` and `etcd` keep it, `cache.py` keeps it over any of
them, and `open.py` is the only module that names the backends.
"""
