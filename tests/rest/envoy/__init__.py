"""What Envoy makes of requests and answers, seen from both sides of it.

A real Envoy with the real configuration stands before a server that answers as the request
tells it to, so that every line of envoy.yaml and errors.lua can be seen from the outside.
"""

import pytest

pytest.register_assert_rewrite("tests.rest.envoy.edge")
