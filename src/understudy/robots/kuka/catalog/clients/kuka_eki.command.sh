# Sends G1 X40 F100 as record 1001 and shows the feedback: last done record, records that wait, -27 …
# With netcat: the same printf | nc -w 2 127.0.0.1 54601 | od -An -v -w48 -td4
exec 3<>/dev/tcp/127.0.0.1/54601
printf '\xe9\x03\0\0\0\0\0\0\0\0\x20\x42\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xc8\x42\0\0\0\0\x41\0\0\0\0\0\0\0' >&3
timeout 60 head -c 480 <&3 | od -An -v -w48 -td4
