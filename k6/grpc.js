// Calls of gRPC, over one connection of each virtual user's own.
import grpc from 'k6/net/grpc';
import { calls } from './operation.js';

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

/** @typedef {{ messages: any[], error: string | undefined }} Answers */

/**
 * @param {string} address as host:port
 * @param {string} file in proto/ that has the service
 * @param {string} method as `package.Service/Method`
 * @returns {(requests: object[]) => Promise<Answers>} sends all, and takes what comes until the end; the first one connects
 */
export function streaming(address, file, method) {
  const client = new grpc.Client();
  client.load(['../proto'], file);
  let connected = false;
  return (requests) =>
    new Promise((resolve) => {
      if (!connected) {
        client.connect(address, { plaintext: true, timeout: CONNECT_MS });
        connected = true;
      }
      const answers = /** @type {Answers} */ ({ messages: [], error: undefined });
      const stream = new grpc.Stream(client, method);
      stream.on('data', (message) => {
        answers.messages.push(message);
      });
      stream.on('error', (error) => {
        answers.error = JSON.stringify(error) || 'unknown';
      });
      stream.on('end', () => resolve(answers));
      calls.add(1);
      for (const request of requests) stream.write(request);
      stream.end();
    });
}

/** @param {Reply} reply */
export function isOk(reply) {
  return reply.status === grpc.StatusOK;
}
