"""HTTP/2 over asyncio transports, as much of it as a client with few peers needs. Knows nothing of gRPC or etcd.

`header_blocks` reads and writes what the format of both sides, the package `http2`, leaves to each; `client` is a connection that a client
has opened.

Source: https://www.rfc-editor.org/rfc/rfc9113
"""
