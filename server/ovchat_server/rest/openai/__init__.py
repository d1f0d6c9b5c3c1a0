"""OpenAI's chat and text completions, with the extensions of OVMS and vLLM."""
