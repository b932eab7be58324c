"""What turns one JSON value into another: JSON patch, merge patch, and server-side apply with its field ownership. Pure functions."""
