"""The engine process: reads commands, steps, reports; compiles grammars beside the steps."""
