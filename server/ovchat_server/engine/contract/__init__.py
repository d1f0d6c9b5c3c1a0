"""What the server asks of an engine process and what comes back: requests, outputs, frames."""
