"""Methods on space filling curves: keys, the sorted array of them, the searches, and the theory of their cost.

- `keys`, `hilbert_keys`: points as keys in Z and in Hilbert order; `sfc_array`: the sorted array of keys
- `index`: the base of all methods here
- `resolution`: how many bits a coordinate has
- `bigmin`, `quadtree`: exact searches
- `density`: exact or with an audited ε, by expected points (`likeliest`, over the counters of `counters`)
- `zorder`, `hilbert`: the slides' greedy approximate search; `cubes`: the standard cubes in its order
- `emulated`: its answers from a closed form; `theory`: how many cubes and runs it costs
"""
