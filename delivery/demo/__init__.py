"""The demonstration that `up --demo` runs: written by the engineer of bench/smoke/publish/demo, 12:28, in work."""
