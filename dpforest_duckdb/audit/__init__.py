"""Lower bounds on the true ε of mechanisms and of whole trainings, measured by running them."""
