"""Methods on space filling curves: keys, the sorted array of them, the searches, and what theory says of their cost."""
