// The shared modules of the scripts by themselves, and what the stand-in must not let pass.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'acorn';
import protobuf from 'protobufjs';
import { loadScript } from './load.mjs';
import { percentile } from './metrics.mjs';
import { fromJson, toJson } from './protojson.mjs';
import { K6, ROOT, run } from './helpers.mjs';

const load = async (file, env = {}) => (await loadScript(join(K6, file), env)).namespace;

test('SKUs follow the rule of the seed', async () => {
  const { sku, lines, seededOrder } = await load('lines.js');
  const checked = [[1, '9790000000018'], [9, '9790000000094'], [10, '9790000000100'], [48, '9790000000483'], [50, '9790000000506']];
  for (const [book, expected] of checked) assert.equal(sku(book), expected);
  for (const book of [1, 999, 1_000_000, 999_999_999]) {
    const digits = [...sku(book)].map(Number);
    assert.equal(digits.length, 13);
    assert.equal(digits.reduce((sum, digit, i) => sum + digit * (i % 2 ? 3 : 1), 0) % 10, 0);
  }
  const made = Array.from(lines(50));
  assert.equal(new Set(made.map((line) => line.sku)).size, 50);
  assert.ok(made.every((line) => line.quantity === 1));
  assert.equal(seededOrder(1), `ord_${'0'.repeat(31)}1`);
});

test('durations are read as k6 writes them', async () => {
  const { milliseconds } = await load('options.js');
  const cases = { '30s': 30_000, '500ms': 500, '1m30s': 90_000, '1.5s': 1500, '0s': 0 };
  for (const [text, expected] of Object.entries(cases)) assert.equal(milliseconds(text), expected);
  for (const text of ['', '30', 's', '5 s', '-5s']) assert.throws(() => milliseconds(text), /not a duration/);
});

test('by default there are 20 users, 5 s of warm-up and 30 s that count', async () => {
  const { options } = await load('options.js');
  assert.deepEqual({ ...options.scenarios.load }, { executor: 'constant-vus', vus: 20, duration: '35000ms' });
});

test('targets fit both shapes', async () => {
  const up = await load('targets.js');
  assert.deepEqual([up.REST, up.GRAPHQL, up.GRPC_WEB], Array(3).fill('http://127.0.0.1:5300'));
  assert.deepEqual([up.CATALOG, up.INVENTORY, up.ORDERING], Array(3).fill('127.0.0.1:5301'));
  assert.deepEqual([...up.METRICS], ['http://127.0.0.1:5390/metrics']);
  const apart = await load('targets.js', { TARGET: 'compose', ORDERING: 'ordering:5313' });
  assert.equal(apart.GRPC_WEB, 'http://127.0.0.1:5311');
  assert.deepEqual([apart.CATALOG, apart.INVENTORY, apart.ORDERING], ['127.0.0.1:5311', '127.0.0.1:5312', 'ordering:5313']);
  assert.equal(apart.METRICS.length, 5);
});

test('persisted documents go by the hash of the file', async () => {
  const { document, persisted } = await load('graphql.js');
  const bytes = readFileSync(join(ROOT, 'graphql/operations/BookDetail.graphql'));
  const { sha256Hash } = persisted(document('BookDetail')).persistedQuery;
  assert.equal(sha256Hash, createHash('sha256').update(bytes).digest('hex'));
});

describe('gRPC-Web', () => {
  const reply = (bytes, headers = {}) => ({ status: 200, headers, body: new Uint8Array(bytes).buffer });
  const ok = [...Buffer.from('grpc-status: 0\r\ngrpc-message: fine\r\n')];

  test('a request is a flag, a length and the message', async () => {
    const { framed, written } = await load('grpcweb.js');
    assert.deepEqual([...new Uint8Array(framed(written({ 1: 1, 2: 2 })))], [0, 0, 0, 0, 4, 8, 1, 16, 2]);
  });

  test('a reply is messages and trailers', async () => {
    const { unframed } = await load('grpcweb.js');
    const got = unframed(reply([0, 0, 0, 0, 2, 8, 1, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, ok.length, ...ok]));
    assert.equal(got.grpcStatus, '0');
    assert.deepEqual(Array.from(got.messages, (message) => [...message]), [[8, 1], []]);
  });

  test('a status without a message comes among the headers', async () => {
    const { unframed } = await load('grpcweb.js');
    assert.equal(unframed(reply([], { 'Grpc-Status': '5' })).grpcStatus, '5');
    assert.equal(unframed({ status: 0, headers: {}, body: null }).grpcStatus, '');
    assert.equal(unframed(reply([0, 0, 0, 0, 0])).grpcStatus, '');
  });

  test('what is cut off or follows the trailers is refused', async () => {
    const { unframed } = await load('grpcweb.js');
    for (const bytes of [[0, 0, 0], [0, 0, 0, 0, 2, 8], [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]) {
      assert.throws(() => unframed(reply(bytes)), /frame/);
    }
  });

  test('messages are read by field', async () => {
    const { read } = await load('grpcweb.js');
    const fields = read(new Uint8Array([8, 0xac, 2, 0x12, 1, 65, 0x12, 0, 0x18, 0xc0, 0x84, 0x3d]));
    assert.deepEqual([...fields[1]], [300]);
    assert.deepEqual(Array.from(fields[2], (bytes) => [...bytes]), [[65], []]);
    assert.deepEqual([...fields[3]], [1_000_000]);
    for (const bytes of [[8], [8, 0x80], [0x12, 2, 1], [0x0d, 0, 0, 0, 0]]) {
      assert.throws(() => read(new Uint8Array(bytes)), /cut off|type/);
    }
  });
});

test('the scripts are written in ES2017 and modules', () => {
  for (const file of readdirSync(K6).filter((name) => name.endsWith('.js'))) {
    const text = readFileSync(join(K6, file), 'utf8');
    assert.doesNotThrow(() => parse(text, { ecmaVersion: 2017, sourceType: 'module' }), file);
  }
});

test('messages are strict when read and whole when shown', () => {
  const { root } = protobuf.parse(`syntax = "proto3";
    enum Kind { KIND_UNSPECIFIED = 0; KIND_SMALL = 1; }
    message Part { int64 amount = 1; }
    message Thing { string long_name = 1; Kind kind = 2; repeated Part parts = 3; Part part = 4; optional int32 maybe = 5; }`);
  root.resolveAll();
  const thing = root.lookupType('Thing');
  const message = fromJson(thing, { long_name: 'a', kind: 'KIND_SMALL', parts: [{ amount: 7 }] });
  const shown = toJson(thing, thing.decode(thing.encode(message).finish()));
  assert.deepEqual(shown, { longName: 'a', kind: 'KIND_SMALL', parts: [{ amount: '7' }], part: null });
  for (const wrong of [{ name: 'a' }, { kind: 'KIND_HUGE' }, { parts: {} }, { longName: 7 }]) {
    assert.throws(() => fromJson(thing, wrong));
  }
});

test('percentiles lie between the nearest values', () => {
  assert.equal(percentile([1, 2, 3, 4], 50), 2.5);
  assert.equal(percentile([1, 2, 3, 4, 5], 95), 4.8);
  assert.equal(percentile([], 50), 0);
});

describe('the stand-in', () => {
  const probe = async (text, options = { iterations: 1 }) => {
    const folder = mkdtempSync(join(tmpdir(), 'k6-probe-'));
    const file = join(folder, 'probe.js');
    writeFileSync(file, text);
    const ended = await run(file, options);
    rmSync(folder, { recursive: true });
    return ended;
  };
  const OPTIONS = `export const options = {
    scenarios: { load: { executor: 'constant-vus', vus: 1, duration: '1ms' } }, thresholds: { checks: ['rate==1'] } };`;

  for (const [what, text, complaint] of [
    ['modules of Node', "import 'node:fs';", /k6 has no module node:fs/],
    ['packages', "import 'acorn';", /k6 has no module acorn/],
    ['the network', "import 'https://example.org/x.js';", /k6 has no module https/],
    ['modules that it lacks', "import 'k6/ws';", /the stand-in has no module k6\/ws/],
    ['members that it lacks', "import { randomSeed } from 'k6';", /randomSeed/],
    ['globals of Node', 'process.exit(0);', /process is not defined/],
    ['calls while loading', "import http from 'k6/http'; http.get('http://127.0.0.1:1');", /init context/],
  ]) {
    test(`refuses ${what}`, async () => {
      const { code, stderr } = await probe(`${text}\n${OPTIONS}\nexport default () => {};`);
      assert.equal(code, 107);
      assert.match(stderr, complaint);
    });
  }

  test('refuses options and thresholds that k6 would refuse', async () => {
    for (const thresholds of ["nothing: ['rate==1']", "checks: ['p(95)<1']", "checks: ['rate=1']"]) {
      const text = OPTIONS.replace("checks: ['rate==1']", thresholds);
      assert.equal((await probe(`${text}\nexport default () => {};`)).code, 104);
    }
  });

  test('hands on what setup returns, and judges a threshold without samples', async () => {
    const text = `import { check } from 'k6';\n${OPTIONS}
      export const setup = () => ({ told: __ENV.TOLD });
      export default (data) => { if (data.told) check(data, { 'was told': (d) => d.told === 'yes' }); };`;
    for (const [told, expected] of [['yes', 0], ['no', 99], ['', 99]]) {
      assert.equal((await probe(text, { iterations: 1, env: { TOLD: told } })).code, expected);
    }
  });

  test('fails the run when setup or the summary throws', async () => {
    for (const part of ['setup', 'teardown', 'handleSummary']) {
      const text = `import { check } from 'k6';\n${OPTIONS}
        export const ${part} = () => { throw new Error('out of order'); };
        export default () => check(1, { 'is 1': (one) => one === 1 });`;
      const { code, stderr } = await probe(text);
      assert.equal(code, 107);
      assert.match(stderr, /out of order/);
    }
  });
});
