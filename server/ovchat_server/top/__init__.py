"""`ovchat top`: what servers are doing, in a terminal."""
