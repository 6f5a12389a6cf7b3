"""The demonstration `up --demo`: artifacts of an invented TeamForge, applications and receivers."""
