# Commands a mobile robot on NATS and prints what becomes of it: NATS is lines of text over TCP.
# With netcat: the same lines | nc -w 2 127.0.0.1 4222
robot=robot-1
id=$(cat /proc/sys/kernel/random/uuid)
body='{"messageId":"'$id'","correlationId":"'$id'","payload":{"commandType":"STOP"}}'
exec 3<>/dev/tcp/127.0.0.1/4222
printf 'CONNECT {"verbose":false}\r\nSUB robot.%s.command.ack 1\r\n' "$robot" >&3
printf 'PUB robot.%s.command.request %d\r\n%s\r\n' "$robot" "${#body}" "$body" >&3
while read -r -t 60 line <&3; do
  case "$line" in
    PING*) printf 'PONG\r\n' >&3 ;;
    *"$id"*) echo "$line" ;;
  esac
  case "$line" in *DONE* | *FAILED* | *REJECTED* | *CANCELED*) break ;; esac
done
