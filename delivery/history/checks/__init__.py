"""What is checked of the whole history: the promises of README, each a pure transform that returns what breaks it."""
