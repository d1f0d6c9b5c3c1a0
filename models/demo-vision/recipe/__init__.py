"""How the demo model for pictures is made, from drawings to a folder that is served."""
