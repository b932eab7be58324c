"""HTTP/2 over asyncio transports, as much of it as a client with few peers needs. Knows nothing of gRPC or etcd.

`frames` and `header_blocks` are the format and hold for both sides; `client` is a connection that a client has opened.

Source: https://www.rfc-editor.org/rfc/rfc9113
"""
