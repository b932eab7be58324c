"""Who has a say in a write beside the kind's own rules: first those that change the object, then those that only look at it."""
