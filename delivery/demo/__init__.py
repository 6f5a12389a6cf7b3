"""What `up --demo` shows: made-up artifacts of a TeamForge, applications that take them, and their receivers."""
