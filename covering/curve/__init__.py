"""Methods on space filling curves: keys, the sorted array of them, the searches, and the theory of their cost.

- `keys`, `hilbert_keys`: points as keys in Z and in Hilbert order; `sfc_array`: the sorted array of keys
- `index`: the base of all methods here
- `bigmin`, `quadtree`: exact searches
- `zorder`, `hilbert`: the slides' greedy approximate search; `cubes`: the standard cubes in its order
- `emulated`: its answers from a closed form; `theory`: how many cubes and runs it costs
"""
