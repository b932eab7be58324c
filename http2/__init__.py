"""What both ends of HTTP/2 write and read in the same way. Knows neither of them: apiserver is one, storage the other.

Source: https://www.rfc-editor.org/rfc/rfc9113
"""
