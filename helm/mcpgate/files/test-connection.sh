# Asks the gateway as a caller does, with nothing but bash. Without a credential 401 is the right answer too.
set -u
ask() { # HOST PORT REQUEST: prints the status
  local line
  exec 3<>"/dev/tcp/$1/$2" || return
  printf '%s' "$3" >&3
  IFS=' ' read -r -t 10 _ line _ <&3
  exec 3>&- 3<&-
  printf '%s' "$line"
}
body='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"helm-test","version":"1"}}}'
post="POST /mcp HTTP/1.1
Host: $SERVICE_HOST
Content-Type: application/json
Accept: application/json, text/event-stream
Connection: close
Content-Length: ${#body}

$body"
status=$(ask "$SERVICE_HOST" "$SERVICE_PORT" "${post//$'\n'/$'\r\n'}")
echo "initialize: ${status:-no answer}"
case $status in 200 | 401) ;; *) exit 1 ;; esac
[ -n "${ADMIN_HOST:-}" ] || exit 0
get="GET /readyz HTTP/1.1
Host: $ADMIN_HOST
Connection: close

"
status=$(ask "$ADMIN_HOST" "${ADMIN_PORT:-9090}" "${get//$'\n'/$'\r\n'}")
echo "readyz: ${status:-no answer}"
case $status in 200) ;; *) exit 1 ;; esac
