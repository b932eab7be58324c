"""HTTP/2 in front of the same connections as HTTP/1.1.

Each stream is carried by a connection of HTTP/1.1 that exists in memory only (`lane`): what answers requests, limits them and writes them
down knows one protocol. Here are frames, header compression, flow control, and the bounds of what one client may cost.
Source: https://www.rfc-editor.org/rfc/rfc9113, https://www.rfc-editor.org/rfc/rfc7541
"""
