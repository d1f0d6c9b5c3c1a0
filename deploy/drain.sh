#!/usr/bin/env bash
# Close Envoy's port and wait for the answers under way, at most so many seconds: drain.sh [SECONDS]
# For a stop hook in Envoy's image, which has bash and no HTTP client.
set -euo pipefail

limit=${1:-30}
port=${ENVOY_ADMIN_PORT:-9901}
# A request counts as done when its last byte is in the connection's buffer, not when it is sent.
stats='^http.rest.downstream_(rq_active|cx_tx_bytes_buffered)$'

admin() {
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf '%s %s HTTP/1.1\r\nhost: admin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n' "$1" "$2" >&3
  cat <&3
  exec 3>&-
}

# The first has connections closed after the answer they carry, the second closes the port, but no
# way out to providers.
admin POST /healthcheck/fail >/dev/null
admin POST '/drain_listeners?inboundonly' >/dev/null
while ((SECONDS < limit)); do
  pending=$(admin GET "/stats?filter=$stats")
  [[ $pending =~ downstream_[a-z_]+:\ [1-9] ]] || exit 0
  sleep 0.2
done
