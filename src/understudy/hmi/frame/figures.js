// Numbers as pages show them.

/** A number with this many decimals; a value that rounds to zero has no sign. */
export const fixed = (value, digits) => value.toFixed(digits).replace(/^-(0(?:\.0+)?)$/, "$1");
