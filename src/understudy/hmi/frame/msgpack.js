// Decoder for msgpack as the state socket sends it (no extension types).

const utf8 = new TextDecoder();

export function decode(buffer) {
  const view = new DataView(buffer);
  let at = 0;

  const bytes = (length) => new Uint8Array(buffer, take(length), length);
  const string = (length) => utf8.decode(bytes(length));
  const array = (length) => Array.from({ length }, value);

  function take(length) {
    const here = at;
    at += length;
    if (at > view.byteLength) throw new RangeError(`cut off at byte ${here}`);
    return here;
  }

  function map(length) {
    const found = {};
    for (let n = 0; n < length; n++) {
      const key = value();
      found[key] = value();
    }
    return found;
  }

  function value() {
    const tag = view.getUint8(take(1));
    if (tag < 0x80) return tag;
    if (tag < 0x90) return map(tag & 0x0f);
    if (tag < 0xa0) return array(tag & 0x0f);
    if (tag < 0xc0) return string(tag & 0x1f);
    if (tag >= 0xe0) return tag - 0x100;
    switch (tag) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: return bytes(view.getUint8(take(1)));
      case 0xc5: return bytes(view.getUint16(take(2)));
      case 0xc6: return bytes(view.getUint32(take(4)));
      case 0xca: return view.getFloat32(take(4));
      case 0xcb: return view.getFloat64(take(8));
      case 0xcc: return view.getUint8(take(1));
      case 0xcd: return view.getUint16(take(2));
      case 0xce: return view.getUint32(take(4));
      case 0xcf: return Number(view.getBigUint64(take(8)));
      case 0xd0: return view.getInt8(take(1));
      case 0xd1: return view.getInt16(take(2));
      case 0xd2: return view.getInt32(take(4));
      case 0xd3: return Number(view.getBigInt64(take(8)));
      case 0xd9: return string(view.getUint8(take(1)));
      case 0xda: return string(view.getUint16(take(2)));
      case 0xdb: return string(view.getUint32(take(4)));
      case 0xdc: return array(view.getUint16(take(2)));
      case 0xdd: return array(view.getUint32(take(4)));
      case 0xde: return map(view.getUint16(take(2)));
      case 0xdf: return map(view.getUint32(take(4)));
      default: throw new RangeError(`not msgpack: 0x${tag.toString(16)} at byte ${at - 1}`);
    }
  }

  return value();
}
