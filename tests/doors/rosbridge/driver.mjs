// node driver.mjs ADDRESS: drives an arm (a trajectory, and one that is canceled) and a mobile robot
// (to a place, then by /cmd_vel) with roslib, and writes what has come of it as one JSON object.
import { pathToFileURL } from "node:url";

const roslib = `${process.env.NODE_PATH}/roslib/dist/RosLib.js`;
const { Action, Ros, Service, Topic } = await import(pathToFileURL(roslib));

const ros = new Ros();
await ros.connect(process.argv[2]);

const call = (name, serviceType, request) =>
  new Promise((resolve, reject) =>
    new Service({ ros, name, serviceType }).callService(request, resolve, reject),
  );
const next = (name, messageType) =>
  new Promise((resolve) => {
    const topic = new Topic({ ros, name, messageType });
    topic.subscribe((message) => {
      topic.unsubscribe();
      resolve(message);
    });
  });
// `cancel`: at the first feedback.
const pursue = (name, actionType, goal, cancel = false) =>
  new Promise((resolve) => {
    const action = new Action({ ros, name, actionType });
    let canceled = false;
    const id = action.sendGoal(
      goal,
      (result) => resolve({ result, canceled }),
      () => {
        if (cancel && !canceled) {
          canceled = true;
          action.cancelGoal(id);
        }
      },
      (failed) => resolve({ failed, canceled }),
    );
  });

const servers = await new Promise((resolve, reject) => ros.getActionServers(resolve, reject));
const robotOf = (action) => servers.find((each) => each.endsWith(action)).split("/")[1];
const found = { servers };

const arm = robotOf("/follow_joint_trajectory");
const follow = [`/${arm}/follow_joint_trajectory`, "control_msgs/action/FollowJointTrajectory"];
found.enabled = await call(`/${arm}/enable`, "std_srvs/srv/SetBool", { data: true });
const joints = () => next(`/${arm}/joint_states`, "sensor_msgs/msg/JointState");
const { name: joint_names, position: here } = await joints();
const there = here.map((q) => q + 0.2);
const trajectory = (sec, positions) => ({
  trajectory: { joint_names, points: [{ positions, time_from_start: { sec, nanosec: 0 } }] },
});
found.reached = await pursue(...follow, trajectory(1, there));
found.moved = Math.max(...(await joints()).position.map((q, n) => Math.abs(q - there[n])));
found.canceled = await pursue(...follow, trajectory(30, here), true);

const robot = robotOf("/navigate_to_pose");
const odometry = () => next(`/${robot}/odom`, "nav_msgs/msg/Odometry");
const { pose } = (await odometry()).pose;
const wanted = pose.position.x + 0.3;
pose.position.x = wanted;
found.navigated = await pursue(`/${robot}/navigate_to_pose`, "nav2_msgs/action/NavigateToPose", {
  pose: { header: { frame_id: "map" }, pose },
});
const before = (await odometry()).pose.pose.position.x;
found.place = before - wanted;
const velocity = new Topic({
  ros,
  name: `/${robot}/cmd_vel`,
  messageType: "geometry_msgs/msg/Twist",
});
let now = before;
while (Math.abs(now - before) < 0.05) {
  velocity.publish({ linear: { x: 0.2, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } });
  now = (await odometry()).pose.pose.position.x;
}
found.driven = Math.abs(now - before);
process.stdout.write(JSON.stringify(found), () => process.exit(0));
