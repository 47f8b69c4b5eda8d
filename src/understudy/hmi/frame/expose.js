// Calls of a script's object that buttons may make before the object is built: they are queued, and
// made in their order when it is.

// → ready(object): from then on `window[name]` is the object itself. `ready` returns a function that
// ends the object (its `close`, if it has one); calls are queued again from then on.
export function expose(name, calls, defaults = {}) {
  let queue = [];
  const queued = (call) => [call, (...args) => void queue.push([call, args])];
  const waiting = { ...Object.fromEntries(calls.map(queued)), ...defaults };
  window[name] = waiting;
  return (object) => {
    window[name] = object;
    for (const [call, args] of queue) object[call](...args);
    queue = [];
    return () => {
      object.close?.();
      window[name] = waiting;
    };
  };
}
