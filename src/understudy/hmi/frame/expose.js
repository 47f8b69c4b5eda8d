// What buttons may call before it is built: such calls are kept, and made in their order when it is.

// → take(built): from now on `window[name]` is the thing itself
export function offer(name, calls, said = {}) {
  const kept = [];
  const keep = (call) => [call, (...given) => void kept.push([call, given])];
  window[name] = { ...Object.fromEntries(calls.map(keep)), ...said };
  return (built) => {
    window[name] = built;
    for (const [call, given] of kept) built[call](...given);
  };
}
