// A client of a cncjs server, as its own page is: signs in, connects, and joins two streams.
// stdin:  one JSON array per line, ["event", ...arguments], is emitted to the server.
// stdout: one JSON array per line, ["event", ...arguments], for every event that the server emits.
// An array that begins with "ask" is emitted with a callback; the answer is ["answer", error, result].

const [folder, address] = process.argv.slice(2);
const { createRequire } = require('module');
const { createInterface } = require('readline');
const connect = createRequire(folder + '/package.json')('socket.io-client');

const print = (...parts) => process.stdout.write(JSON.stringify(parts) + '\n');
const EVENTS = [
  'startup', 'serialport:open', 'serialport:close', 'serialport:error', 'serialport:read', 'serialport:write',
  'controller:settings', 'controller:state', 'feeder:status', 'sender:status', 'workflow:state', 'gcode:load',
];

async function main() {
  const answer = await fetch(address + '/api/signin', { method: 'POST' });
  const { token } = await answer.json();
  const socket = connect(address, { query: 'token=' + token, transports: ['websocket'] });
  for (const name of EVENTS) socket.on(name, (...parts) => print(name, ...parts));
  for (const name of ['connect_error', 'error', 'disconnect']) socket.on(name, (problem) => print(name, String(problem)));
  const input = createInterface({ input: process.stdin });
  input.on('line', (line) => {
    const [name, ...parts] = JSON.parse(line);
    if (name === 'ask') socket.emit(...parts, (problem, result) => print('answer', problem && String(problem), result));
    else socket.emit(name, ...parts);
  });
  input.on('close', () => process.exit(0));
}

main();
