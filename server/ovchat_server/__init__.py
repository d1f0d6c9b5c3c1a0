"""ovchat: chat completions on OpenVINO GenAI, gRPC first."""
