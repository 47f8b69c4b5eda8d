// node viewer.js ADDRESS TOPIC…: the first message of each topic, and what services, parameters and
// time say, by Foxglove's own client, as one JSON object.
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const { WebSocket } = require("ws");

const [address, ...topics] = process.argv.slice(2);
const client = new FoxgloveClient({
  ws: new WebSocket(address, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]),
});
const found = { values: {} };
const subscriptions = new Map();
const text = (view) => new TextDecoder().decode(view);
const empty = new Uint8Array(new TextEncoder().encode("{}"));
const finish = () => {
  const whole = topics.every((topic) => topic in found.values) && found.info && found.parameters;
  if (whole && found.paused && found.refused && found.time) {
    process.stdout.write(JSON.stringify(found), () => process.exit(0));
  }
};

client.on("error", (error) => {
  console.error(String(error));
  process.exit(1);
});
client.on("serverInfo", (info) => {
  found.info = info;
  client.getParameters([], "1");
});
client.on("advertise", (channels) => {
  for (const { id, topic } of channels) {
    if (topics.includes(topic)) {
      subscriptions.set(client.subscribe(id), topic);
    }
  }
});
client.on("message", ({ subscriptionId, data }) => {
  found.values[subscriptions.get(subscriptionId)] ??= JSON.parse(text(data));
  finish();
});
client.on("time", ({ timestamp }) => {
  found.time = Number(timestamp);
  const call = (name, callId, data) => {
    const serviceId = found.services.get(name);
    client.sendServiceCallRequest({ serviceId, callId, encoding: "json", data });
  };
  if (!found.called && topics.every((topic) => topic in found.values)) {
    found.called = true; // the clock stands from now on
    call("/emergency_stop", 2, new Uint8Array(new TextEncoder().encode('{"nothing": 1}')));
    call("/pause", 1, empty);
  }
});
client.on("advertiseServices", (services) => {
  found.services = new Map(services.map(({ id, name }) => [name, id]));
});
client.on("serviceCallResponse", ({ data }) => {
  found.paused = JSON.parse(text(data));
  finish();
});
client.on("serviceCallFailure", ({ message }) => {
  found.refused = message;
  finish();
});
client.on("parameterValues", ({ parameters }) => {
  found.parameters = parameters;
  finish();
});
