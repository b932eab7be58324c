"""HTTP/2 in front of the same handlers as HTTP/1.1.

A stream is to a request of aiohttp's what a connection is over HTTP/1.1 (`stream`): what answers requests, limits them and writes them down
knows no difference. Here are frames, header compression, flow control, and the bounds of what one client may cost.
Source: https://www.rfc-editor.org/rfc/rfc9113, https://www.rfc-editor.org/rfc/rfc7541
"""
