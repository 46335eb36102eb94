// The networking of one virtual user, with connections of its own.
import { Agent, request as httpRequest } from 'node:http';
import { Socket } from 'node:net';
import { resolve } from 'node:path';
import { workerData } from 'node:worker_threads';
import { existsSync } from 'node:fs';
import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { gunzipSync } from 'node:zlib';
import { fromJson, toJson } from './protojson.mjs';

const { port, answered } = workerData;
const TIMEOUT_MS = 60_000;

// Bytes are counted at the sockets, all of them, as k6 does it.
const sockets = new Set();
const connect = Socket.prototype.connect;
Socket.prototype.connect = function (...args) {
  sockets.add(this);
  return connect.apply(this, args);
};

// k6 makes at most six requests at a time to one host.
const agent = new Agent({ keepAlive: true, maxSockets: 6 });
const clients = [];

const actions = {
  http: (requests) => Promise.all(requests.map(send)),
  'grpc-client': () => clients.push({ methods: new Map() }) - 1,
  'grpc-load': load,
  'grpc-connect': dial,
  'grpc-invoke': invoke,
  'grpc-stream': exchange,
  'grpc-close': ({ id }) => clients[id].connection?.close(),
};

port.on('message', async ({ what, argument }) => {
  const answer = {};
  try {
    answer.result = await actions[what](argument);
  } catch (error) {
    answer.error = error.message;
  }
  answer.bytes = { sent: 0, received: 0 };
  for (const socket of sockets) {
    answer.bytes.sent += socket.bytesWritten || 0;
    answer.bytes.received += socket.bytesRead || 0;
  }
  port.postMessage(answer);
  Atomics.add(answered, 0, 1);
  Atomics.notify(answered, 0);
});

/** A request that fails is a reply of status 0, as in k6. */
function send({ method, url, body, headers, binary }) {
  const began = performance.now();
  return new Promise((done) => {
    const end = (reply) => done({ ...reply, ms: performance.now() - began });
    const failed = (error) => end({ status: 0, body: null, headers: {}, error: error.message });
    const content = body === undefined ? undefined : Buffer.from(body);
    const length = content ? { 'Content-Length': content.length } : {};
    const all = { 'User-Agent': 'k6-stand-in', ...length, ...headers };
    const request = httpRequest(url, { method, headers: all, agent, timeout: TIMEOUT_MS }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', failed);
      response.on('end', () => {
        let bytes = Buffer.concat(chunks);
        // As k6 does, without a word.
        if (response.headers['content-encoding'] === 'gzip') bytes = gunzipSync(bytes);
        end({
          status: response.statusCode,
          headers: canonical(response.headers),
          body: binary ? new Uint8Array(bytes).buffer : bytes.toString(),
          error: '',
        });
      });
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', failed);
    request.end(content);
  });
}

/** Names as Go spells them. */
function canonical(headers) {
  const spelt = (name) => name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [spelt(name), String(value)]));
}

function load({ id, importPaths, files }) {
  const root = new protobuf.Root();
  root.resolvePath = (_, file) => importPaths.map((path) => resolve(path, file)).find(existsSync) || file;
  root.loadSync(files);
  root.resolveAll();
  const visit = (node) => {
    for (const service of node.nestedArray || []) {
      if (service instanceof protobuf.Service) {
        for (const method of service.methodsArray) {
          clients[id].methods.set(`${service.fullName.slice(1)}/${method.name}`, method);
        }
      }
      visit(service);
    }
  };
  visit(root);
}

function dial({ id, address, timeout }) {
  const connection = new grpc.Client(address, grpc.credentials.createInsecure());
  return new Promise((done, refused) => {
    connection.waitForReady(Date.now() + timeout, (error) => (error ? refused(error) : done()));
    // Doesn't wait for better times, as k6 may.
    const channel = connection.getChannel();
    const watch = (last) =>
      channel.watchConnectivityState(last, Date.now() + timeout, () => {
        const now = channel.getConnectivityState(false);
        if (now === grpc.connectivityState.TRANSIENT_FAILURE) refused(new Error(`can't connect to ${address}`));
        else if (now !== grpc.connectivityState.READY) watch(now);
      });
    watch(channel.getConnectivityState(true));
  }).then(
    () => {
      clients[id].connection = connection;
    },
    (error) => {
      connection.close();
      throw error;
    }
  );
}

/** The connection of a client, and the types of a method. */
function found({ id, method }) {
  const { connection, methods } = clients[id];
  if (!connection) throw new Error('no gRPC connection, you must call connect first');
  const types = methods.get(method.replace(/^\//, ''));
  if (!types) throw new Error(`method "${method}" not found in file descriptors`);
  return { connection, input: types.resolvedRequestType, output: types.resolvedResponseType };
}

/** Sends the messages of a stream, and gathers what comes. */
function exchange({ id, method, messages: requests }) {
  const { connection, input, output } = found({ id, method });
  const sent = requests.map((request) => fromJson(input, request));
  return new Promise((done) => {
    const messages = [];
    const call = connection.makeBidiStreamRequest(
      `/${method.replace(/^\//, '')}`,
      (value) => Buffer.from(input.encode(value).finish()),
      (bytes) => output.decode(bytes),
      { deadline: Date.now() + TIMEOUT_MS }
    );
    call.on('data', (message) => messages.push(toJson(output, message)));
    call.on('error', (error) => done({ messages, error: { code: error.code, message: error.details, details: [] } }));
    call.on('end', () => done({ messages }));
    for (const message of sent) call.write(message);
    call.end();
  });
}

function invoke({ id, method, request }) {
  const { connection, input, output } = found({ id, method });
  const message = fromJson(input, request);
  const began = performance.now();
  return new Promise((done) => {
    const call = connection.makeUnaryRequest(
      `/${method.replace(/^\//, '')}`,
      (value) => Buffer.from(input.encode(value).finish()),
      (bytes) => output.decode(bytes),
      message,
      { deadline: Date.now() + TIMEOUT_MS },
      (error, reply) => {
        // On an error, too, k6 makes a message, an empty one.
        const value = toJson(output, reply || output.create());
        const told = error && { code: error.code, message: error.details };
        done({ status: error ? error.code : 0, message: value, error: told || null, ms: performance.now() - began });
      }
    );
    call.on('error', () => {});
  });
}
