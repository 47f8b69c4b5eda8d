// A backend with the NATS client of npm: a command, and what becomes of it.
// node backend.js SERVER ROBOT; prints one line of JSON.
const { connect, StringCodec, headers } = require("nats");

async function main() {
  const [server, robot] = process.argv.slice(2);
  const client = await connect({ servers: server });
  const text = StringCodec();
  const acks = client.subscribe(`robot.${robot}.command.ack`);
  const messageId = "from-npm";
  const marked = headers();
  marked.set("Nats-Msg-Id", messageId);
  const message = {
    payloadVersion: 1,
    messageId,
    robotId: robot,
    ts: new Date().toISOString(),
    payload: {
      commandType: "MOVE_VELOCITY",
      parameters: { linear: 0.1, durationSeconds: 0.5 },
      requestedBy: { userId: "u-1", username: "Ann" },
    },
  };
  const subject = `robot.${robot}.command.request`;
  const stored = await client.jetstream().publish(subject, text.encode(JSON.stringify(message)), { headers: marked });
  const statuses = [];
  for await (const each of acks) {
    const ack = JSON.parse(text.decode(each.data));
    if (ack.correlationId !== messageId) continue;
    statuses.push(ack.payload.status);
    if (ack.payload.status !== "ACKED" && ack.payload.status !== "RUNNING") break;
  }
  console.log(JSON.stringify({ stream: stored.stream, statuses }));
  await client.close();
}

main().catch((problem) => { console.error(problem); process.exit(1); });
