"""Methods on space filling curves: keys, the sorted array of them, the searches, and the theory of their cost."""
