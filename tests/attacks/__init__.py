"""What one client can do to others: the harm, beside the harmed caller's figures alone."""
