"""Overlays: `graph` (made or loaded, the spanning tree), `kinds`, `files`, `latency`, `map` (places on the globe),
`layout` (places in a picture), and `trees` (the trees that messages follow)."""
