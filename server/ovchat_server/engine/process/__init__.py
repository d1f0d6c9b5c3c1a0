"""The engine process, whatever it runs: takes commands, has its worker step, sends reports."""
