// gRPC-Web, which k6 has no module for: messages in frames of a flag byte, four bytes of length, and the content.
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md

const TRAILERS = 0x80;

/**
 * @param {number[]} message
 * @returns {ArrayBuffer} the body of a request
 */
export function framed(message) {
  const frame = new Uint8Array(5 + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, 5);
  return frame.buffer;
}

/**
 * Takes a reply apart.
 * @param {{ status: number, headers: { [name: string]: string }, body: unknown }} response
 * @returns {{ status: number, grpcStatus: string, messages: Uint8Array[] }} `grpcStatus` is empty when none came
 */
export function unframed(response) {
  const bytes = response.body ? new Uint8Array(/** @type {ArrayBuffer} */ (response.body)) : new Uint8Array(0);
  const view = new DataView(bytes.buffer);
  const messages = [];
  // An error before the first message comes without a body: its status is among the headers.
  let grpcStatus = response.headers['Grpc-Status'] || '';
  for (let at = 0; at < bytes.length; ) {
    if (at + 5 > bytes.length) throw new Error('a frame is cut off in its head');
    const end = at + 5 + view.getUint32(at + 1);
    if (end > bytes.length) throw new Error('a frame is cut off');
    const content = bytes.subarray(at + 5, end);
    if (bytes[at] === TRAILERS) {
      if (end !== bytes.length) throw new Error('a frame follows the trailers');
      grpcStatus = trailer(content, 'grpc-status');
    } else if (bytes[at] === 0) {
      messages.push(content);
    } else {
      throw new Error(`a frame has the unknown flags ${bytes[at]}`);
    }
    at = end;
  }
  return { status: response.status, grpcStatus, messages };
}

/**
 * @param {Uint8Array} content of a frame of trailers
 * @param {string} name
 * @returns {string} its value, empty when it isn't there
 */
function trailer(content, name) {
  const text = Array.from(content, (byte) => String.fromCharCode(byte)).join('');
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    if (line.slice(0, colon).toLowerCase() === name) return line.slice(colon + 1).trim();
  }
  return '';
}

/**
 * Writes a message whose fields are all small numbers, from 1 to 127.
 * @param {{ [field: number]: number }} fields
 * @returns {number[]}
 */
export function written(fields) {
  const bytes = [];
  for (const field of Object.keys(fields)) bytes.push(Number(field) << 3, fields[Number(field)]);
  return bytes;
}

/**
 * Reads a message one level deep.
 * @param {Uint8Array} bytes
 * @returns {{ [field: number]: any[] }} the values of each field: numbers, or the bytes of texts and messages
 */
export function read(bytes) {
  /** @type {{ [field: number]: any[] }} */
  const fields = {};
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (at >= bytes.length) throw new Error('a message is cut off');
      const byte = bytes[at];
      at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const field = Math.floor(key / 8);
    let value;
    if (key % 8 === 0) {
      value = varint();
    } else if (key % 8 === 2) {
      const end = varint() + at;
      if (end > bytes.length) throw new Error('a message is cut off');
      value = bytes.subarray(at, end);
      at = end;
    } else {
      throw new Error(`field ${field} is of a type that no message here has`);
    }
    fields[field] = (fields[field] || []).concat([value]);
  }
  return fields;
}
