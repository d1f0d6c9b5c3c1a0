"""How models write tool calls and reasoning: a parser for each dialect, behind one interface."""
