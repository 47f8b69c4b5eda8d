// A running cell over REST, in Node 18 or newer or in a browser: no package is needed.
//
//   node rest_client.mjs ready.json        of `understudy run text_robot --ready-file ready.json`

import { readFileSync } from "node:fs";

export function connect({ url, secret }) {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${secret}` };
  const request = async (command, parameters) => {
    const body = JSON.stringify(parameters);
    const answer = await fetch(`${url}/api/${command}`, { method: "POST", headers, body });
    const content = await answer.json();
    if (!answer.ok) throw new Error(`${command}: ${content.message}`);
    return content;
  };
  // cell.advance({ seconds: 2 }): every command of the cell is a method
  return new Proxy({}, { get: (_, command) => (parameters = {}) => request(command, parameters) });
}

const ready = JSON.parse(readFileSync(process.argv[2], "utf8"));
const cell = connect({ url: ready.endpoints.hmi.replace(/\/$/, ""), secret: ready.secret });

const { snapshot } = await cell.snapshot();
console.log("before:", (await cell.now()).now_s);
console.log("later:", (await cell.advance({ seconds: 2 })).now_s);
const { robots } = await cell.robots();
const [{ name }] = robots;
await cell.inject({ fault: "emergency_stop", on: name });
const shown = async () => (await cell.robots()).robots[0].state;
console.log(`${name}: ${await shown()}`);
await cell.restore({ snapshot });
console.log(`${name}: ${await shown()}`);
await cell.no_such_command().catch((error) => console.log("refused:", error.message.slice(0, 60)));
