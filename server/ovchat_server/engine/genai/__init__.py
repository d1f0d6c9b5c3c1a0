"""OpenVINO GenAI: its pipeline, and what we add to it. The only package that imports it."""
