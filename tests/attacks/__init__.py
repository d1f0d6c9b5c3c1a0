"""What one client can do to another: the harm without a bound, and beside it with the bound."""
