"""Lower bounds on the ε that mechanisms and whole trainings really have, from what they do."""
