"""What is checked of the whole history: SPEC's promises (section 10), each a pure transform that returns what breaks it."""
