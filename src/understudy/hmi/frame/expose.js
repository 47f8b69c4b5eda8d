// Calls of a script's object that buttons may make before the object is built: they are queued, and
// made in their order when it is.

// → ready(object): from then on `window[name]` is the object itself
export function expose(name, calls, defaults = {}) {
  const queue = [];
  const queued = (call) => [call, (...args) => void queue.push([call, args])];
  window[name] = { ...Object.fromEntries(calls.map(queued)), ...defaults };
  return (object) => {
    window[name] = object;
    for (const [call, args] of queue) object[call](...args);
  };
}
