"""Models that run elsewhere: requests in the APIs of their providers, answers as domain chunks."""
