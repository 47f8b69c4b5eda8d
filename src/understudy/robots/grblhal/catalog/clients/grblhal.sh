# Asks a grblHAL controller for its state. With netcat: printf '?' | nc -w 2 127.0.0.1 2323
exec 3<>/dev/tcp/127.0.0.1/2323
printf '?' >&3
while read -r -t 60 line <&3; do
  echo "$line"
  case "$line" in "<"*) break ;; esac
done
