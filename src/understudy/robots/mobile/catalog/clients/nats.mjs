// Commands a mobile robot on NATS and prints what becomes of it. NATS is lines of text over TCP: no
// package is needed; `npm install nats` has a client with reconnects.
import net from "node:net";
import { randomUUID } from "node:crypto";

const robot = "robot-1";
const server = net.connect(4222, "127.0.0.1");
const id = randomUUID();
const envelope = { messageId: id, correlationId: id, payload: { commandType: "STOP" } };
const body = JSON.stringify(envelope);
server.write(`CONNECT {"verbose":false}\r\nSUB robot.${robot}.command.ack 1\r\n`);
server.write(`PUB robot.${robot}.command.request ${Buffer.byteLength(body)}\r\n${body}\r\n`);

let rest = "";
server.on("data", (data) => {
  const lines = (rest + data).split("\r\n");
  rest = lines.pop();
  for (const line of lines) {
    if (line === "PING") server.write("PONG\r\n");
    if (!line.startsWith("{") || JSON.parse(line).correlationId !== id) continue;
    const { status, reason } = JSON.parse(line).payload;
    console.log(status, reason ?? "");
    if (["DONE", "FAILED", "REJECTED", "CANCELED"].includes(status)) server.destroy();
  }
});
