# The gRPC server. Envoy runs beside it, from its own image: deploy/compose.yaml.
FROM python:3.11.13-slim-bookworm AS build

RUN python -m venv /venv
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY envoy envoy
COPY gen gen
COPY models/demo models/demo
COPY server server
RUN /venv/bin/pip install --no-cache-dir .

FROM python:3.11.13-slim-bookworm

RUN useradd --system --uid 10001 --create-home ovchat
COPY --from=build /venv /venv
# Unbuffered: the last lines before a crash are the ones that matter.
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
USER ovchat
EXPOSE 9000

# A model may take minutes to load; until then the container is starting, not unhealthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m --start-interval=2s \
    CMD ["python", "-m", "ovchat_server.launch.healthcheck", "127.0.0.1:9000"]

CMD ["ovchat", "serve", "--host", "0.0.0.0", "--model", "demo=/models/demo"]
