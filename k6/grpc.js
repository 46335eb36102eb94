// Calls of gRPC, over one connection of each virtual user's own.
import grpc from 'k6/net/grpc';

const CONNECT_MS = 5000;

/** @typedef {{ status: number, message: any }} Reply */

/**
 * @param {string} address as host:port
 * @param {string} file in proto/ that has the service
 * @param {string} method as `package.Service/Method`
 * @returns {(request: object) => Reply} makes the call; the first one connects
 */
export function method(address, file, method) {
  const client = new grpc.Client();
  client.load(['../proto'], file);
  let connected = false;
  return (request) => {
    if (!connected) {
      client.connect(address, { plaintext: true, timeout: CONNECT_MS });
      connected = true;
    }
    return client.invoke(method, request);
  };
}

/** @param {Reply} reply */
export function isOk(reply) {
  return reply.status === grpc.StatusOK;
}
