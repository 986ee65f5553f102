"""What must hold of every plan, checked apart from the code that makes it: `invariants` is all."""
