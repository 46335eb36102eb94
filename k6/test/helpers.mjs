// What the tests share: the suite, servers that answer wrong, and runs of scripts under the stand-in.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';

export const K6 = fileURLToPath(new URL('..', import.meta.url));
export const ROOT = resolve(K6, '..');
export const RUN = join(K6, 'test/run.mjs');

/** All scripts, with the knobs that they have. */
export const RUNS = [
  ...['rest', 'grpc', 'graphql', 'graphql-persisted'].flatMap((style) => [
    { script: `reserve.${style}.js`, knobs: { LINES: '2' }, name: `reserve-2.${style}` },
    { script: `reserve.${style}.js`, knobs: { LINES: '50' }, name: `reserve-50.${style}` },
  ]),
  ...['rest', 'rest-bff', 'graphql', 'graphql-persisted', 'grpc-web', 'grpc'].map((style) => ({
    script: `detail.${style}.js`,
    knobs: {},
    name: `detail.${style}`,
  })),
  ...['rest', 'grpc', 'graphql'].flatMap((style) => [
    { script: `order.${style}.js`, knobs: { VIEW: 'status' }, name: `order-200b.${style}` },
    { script: `order.${style}.js`, knobs: { VIEW: 'full' }, name: `order-2k.${style}` },
    { script: `order.${style}.js`, knobs: { VIEW: 'history' }, name: `order-64k.${style}` },
  ]),
  ...['rest', 'grpc'].flatMap((style) => [
    { script: `list.${style}.js`, knobs: { TIMES: '1' }, name: `list-50.${style}` },
    { script: `list.${style}.js`, knobs: { TIMES: '10' }, name: `list-50-x10.${style}` },
  ]),
  ...['rest', 'grpc'].map((style) => ({ script: `bulk-get.${style}.js`, knobs: {}, name: `bulk-get.${style}` })),
  { script: 'bulk-stream.rest.js', knobs: {}, name: 'bulk-stream.rest-ndjson' },
  ...['1', '10', '100'].map((batch) => ({
    script: 'bulk-stream.grpc.js',
    knobs: { BATCH: batch },
    name: `bulk-stream.grpc-${batch}`,
  })),
  { script: 'bulk-post.rest.js', knobs: { NDJSON: '0' }, name: 'bulk-post.rest' },
  { script: 'bulk-post.rest.js', knobs: { NDJSON: '1' }, name: 'bulk-post.rest-ndjson' },
  { script: 'bulk-post.grpc.js', knobs: {}, name: 'bulk-post.grpc' },
  ...['1', '100'].map((batch) => ({
    script: 'bulk-post.grpc.js',
    knobs: { BATCH: batch },
    name: `bulk-post.grpc-stream-${batch}`,
  })),
  ...['rest', 'rest-gzip', 'rest-304', 'grpc'].map((style) => ({
    script: `page.${style}.js`,
    knobs: {},
    name: `page.${style}`,
  })),
];

/** The scripts of k6/, those with a style in their name. */
export const scripts = () => readdirSync(K6).filter((name) => /^[\w-]+\.[\w-]+\.js$/.test(name));

/** Starts the suite with free ports. */
export async function suite(...flags) {
  const binary = resolve(ROOT, process.env.BOOKSTORE_BIN || 'target/release/bookstore');
  if (!existsSync(binary)) throw new Error(`${binary} is missing: build it, or name another one with BOOKSTORE_BIN`);
  const env = { ...process.env, BOOKSTORE_PORT: '0', BOOKSTORE_GRPC_PORT: '0', BOOKSTORE_LOG: 'warn' };
  const child = spawn(binary, ['up', ...flags], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const targets = {};
  for await (const line of createInterface({ input: child.stdout })) {
    const [what, where] = line.split(/\s+/);
    if (what === 'gRPC-Web') targets.HTTP = where;
    if (what === 'gRPC') targets.GRPC = where;
    if (what === 'Metrics') targets.METRICS = where;
    if (/^Ctrl-C/.test(line)) break;
  }
  const stop = async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  };
  return { targets, stop };
}

/** Runs a script and tells how it ended and what it wrote. */
export async function run(script, { env = {}, iterations, vus = 1, warmup = '0s' }) {
  const results = mkdtempSync(join(tmpdir(), 'k6-results-'));
  const all = { WARMUP: warmup, RESULTS: results, ...env };
  const args = Object.entries(all).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
  if (iterations) args.push('--iterations', iterations);
  args.push('--vus', vus, resolve(K6, script));
  const { code, stdout, stderr } = await finished(spawn(process.execPath, [RUN, ...args.map(String)], { cwd: ROOT }));
  const files = Object.fromEntries(readdirSync(results).map((name) => [name, readFileSync(join(results, name), 'utf8')]));
  rmSync(results, { recursive: true });
  return { code, stdout, stderr, files };
}

/** Waits for a process and its output. */
export async function finished(child) {
  const texts = { stdout: '', stderr: '' };
  for (const stream of Object.keys(texts)) {
    child[stream].setEncoding('utf8').on('data', (text) => {
      texts[stream] += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, ...texts };
}

/** An HTTP server on a free port. */
export async function httpServer(answer) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { url: `http://127.0.0.1:${server.address().port}`, stop };
}

/** Hands bytes on to an address, and counts the connections. */
export async function countingProxy(address) {
  const [host, port] = address.split(':');
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections += 1;
    const onward = connect(Number(port), host);
    for (const end of [socket, onward]) end.on('error', () => {}).on('close', () => [socket, onward].forEach((s) => s.destroy()));
    socket.pipe(onward).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => once(server.close(), 'close');
  return { address: `127.0.0.1:${server.address().port}`, connections: () => connections, stop };
}

/** A gRPC server that answers these methods with messages that say nothing. */
export async function emptyGrpcServer(methods) {
  const server = new grpc.Server();
  const bytes = (value) => value;
  const definition = (path) => ({
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  });
  server.addService(
    Object.fromEntries(methods.map((path) => [path, definition(path)])),
    Object.fromEntries(methods.map((path) => [path, (call, done) => done(null, Buffer.alloc(0))]))
  );
  const port = await new Promise((done, failed) => {
    const bound = (error, number) => (error ? failed(error) : done(number));
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), bound);
  });
  return { address: `127.0.0.1:${port}`, stop: () => server.forceShutdown() };
}
