// Moves a KUKA behind its G-code server (EKI): one record is one line of G-code.
import net from "node:net";

const X_AND_F = 1 | 64; // bits of the given fields
const robot = net.connect(54601, "127.0.0.1");
let rest = Buffer.alloc(0);
let heard = () => {};
robot.on("data", (data) => {
  rest = Buffer.concat([rest, data]);
  for (; rest.length >= 48; rest = rest.subarray(48)) heard(rest.readInt32LE(0), rest.readInt32LE(4));
});

// G1 X… F100, and waits until it is done: feedback comes every 50 ms.
function moveX(number, x) {
  const record = Buffer.alloc(48); // number, type, X Y Z A B C F E, bits
  record.writeInt32LE(number, 0);
  record.writeFloatLE(x, 8);
  record.writeFloatLE(100, 32);
  record.writeInt32LE(X_AND_F, 40);
  robot.write(record);
  return new Promise((done) => {
    heard = (last, waiting) => last === number && done(waiting);
  });
}

for (const [number, x] of [[1001, 40], [1002, 0]]) {
  const waiting = await moveX(number, x);
  console.log(`record ${number}: at X ${x}, ${waiting} wait`);
}
robot.destroy();
