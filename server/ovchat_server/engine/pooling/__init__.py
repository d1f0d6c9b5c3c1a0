"""The engine process for models that make a vector of each text: batches, OpenVINO, pooling."""
