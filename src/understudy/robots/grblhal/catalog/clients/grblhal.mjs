// Asks a grblHAL controller for its state, then sends lines and waits for the answer of each.
import net from "node:net";
import readline from "node:readline";

const robot = net.connect(2323, "127.0.0.1");
const answers = readline.createInterface({ input: robot })[Symbol.asyncIterator]();
const next = async () => (await answers.next()).value.trim();

robot.write("?"); // a real-time byte without a line end: answered at once, also in a motion
let line = await next();
while (!line.startsWith("<")) line = await next();
console.log("state:", line);
for (const command of ["$G", "G4 P0.5"]) {
  robot.write(`${command}\n`);
  line = await next();
  while (!/^(ok|error:)/.test(line)) {
    if (line) console.log(line);
    line = await next();
  }
  console.log(command, "->", line);
}
robot.destroy();
