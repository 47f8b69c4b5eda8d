// A master control with vda-5050-lib: an order with pick and drop, a pause, a cancellation.
// node master.js BROKER; prints one line of JSON.
const { MasterController, BlockingType } = require("vda-5050-lib");

const AGV = { manufacturer: "maker", serialNumber: "robot-1" };
const master = new MasterController(
  { interfaceName: "uagv", transport: { brokerUrl: process.argv[2] }, vdaVersion: "2.0.0" },
  {},
);
const said = { traversed: [], actions: [], instant: [], errors: [] };

function act(type, ...pairs) {
  const actionParameters = pairs.map(([key, value]) => ({ key, value }));
  return {
    actionId: master.createUuid(), actionType: type, blockingType: BlockingType.Hard, actionParameters,
  };
}

function node(name, sequenceId, x, y, actions = []) {
  const nodePosition = { x, y, mapId: "hall" };
  return { nodeId: name, sequenceId, released: true, nodePosition, actions };
}

function way(start, x, y, far, first = [], last = []) {
  return {
    orderId: master.createUuid(),
    orderUpdateId: 0,
    nodes: [node(start, 0, x, y, first), node(`${start}-end`, 2, x + far, y, last)],
    edges: [{
      edgeId: `${start}-edge`, sequenceId: 1, startNodeId: start, endNodeId: `${start}-end`,
      released: true, actions: [],
    }],
  };
}

function drive(order) {
  return new Promise((resolve, reject) => master.assignOrder(AGV, order, {
    onOrderProcessed: (error, byCancelation) => resolve({ error: error && error.errorType, byCancelation }),
    onNodeTraversed: (passed) => said.traversed.push(passed.nodeId),
    onActionStateChanged: (state) => said.actions.push(`${state.actionType}:${state.actionStatus}`),
  }).catch(reject));
}

function instantly(action) {
  return new Promise((resolve) => master.initiateInstantActions(AGV, { instantActions: [action] }, {
    onActionStateChanged: (action, withError, asked, agv, state) => {
      said.instant.push(`${action.actionType}:${action.actionStatus}`);
      if (["FINISHED", "FAILED"].includes(action.actionStatus)) resolve(state);
    },
    onActionError: (error) => { said.errors.push(error.errorType); resolve(); },
  }));
}

let position;
let driving = false;

async function until(test) {
  while (!test()) await new Promise((resolve) => setTimeout(resolve, 10));
}

async function main() {
  await master.start();
  await master.subscribe("state", AGV, (state) => {
    position = state.agvPosition;
    driving = state.driving;
  });
  await until(() => position);
  const { x, y } = position;
  said.first = await drive(way("a", x, y, 0.5, [act("pick", ["loadType", "box"])], [act("drop")]));
  const far = drive(way("b", x + 0.5, y, 2000));
  await until(() => driving);
  said.stands = !(await instantly(act("startPause"))).driving;
  await instantly(act("stopPause"));
  await until(() => driving);
  await instantly(act("cancelOrder"));
  said.second = await far;
  await master.stop();
  console.log(JSON.stringify(said));
  process.exit(0);
}

main().catch((problem) => { console.error(problem); process.exit(1); });
