// Counts the messages of each topic of a log with @mcap/core: node mcap_reader.js FILE.mcap
// A whole file is read by its index, a cut one as a stream, up to the cut.
const { readFileSync } = require("node:fs");
const { McapIndexedReader, McapStreamReader } = require("@mcap/core");
const zstd = require("@foxglove/wasm-zstd");

const data = new Uint8Array(readFileSync(process.argv[2]));
const decompressHandlers = { zstd: (chunk, size) => zstd.decompress(chunk, Number(size)) };
const readable = {
  size: async () => BigInt(data.length),
  read: async (offset, size) => data.subarray(Number(offset), Number(offset + size)),
};

async function indexed(count) {
  const reader = await McapIndexedReader.Initialize({ readable, decompressHandlers });
  for await (const message of reader.readMessages()) {
    count(reader.channelsById.get(message.channelId).topic, message);
  }
}

function streamed(count) {
  const reader = new McapStreamReader({ decompressHandlers });
  const topics = new Map();
  reader.append(data);
  for (let record; (record = reader.nextRecord()); ) {
    if (record.type === "Channel") topics.set(record.id, record.topic);
    if (record.type === "Message") count(topics.get(record.channelId), record);
  }
}

async function main() {
  await zstd.isLoaded;
  const counts = { indexed: {}, streamed: {} };
  const counter = (found) => (topic, message) => {
    JSON.parse(new TextDecoder().decode(message.data));
    found[topic] = (found[topic] ?? 0) + 1;
  };
  await indexed(counter(counts.indexed)).catch((problem) => (counts.indexed = String(problem)));
  streamed(counter(counts.streamed));
  console.log(JSON.stringify(counts));
}

main();
