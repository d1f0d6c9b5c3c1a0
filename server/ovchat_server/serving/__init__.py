"""The life of one request, which both doors call, and the models it can ask for."""
